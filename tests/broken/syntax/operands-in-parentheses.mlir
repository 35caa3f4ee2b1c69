func.func @main(%a: i32) -> i32 {
  %x = tfrt.add.i32(%a, %a)
  %y = tfrt.add.i32(%a, %a) : (i32, i32) -> i32
  tfrt.return %x : i32
}
