func.func @main(%a: i32,) -> i32 {
  %x = tfrt.add.i32 %a, %a,
  tfrt.return %x : i32
}
