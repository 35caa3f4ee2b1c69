func.func @main(%a: i32) -> i32 {
  %x = tfrt.div.i32 %a, %a
  tfrt.return %x : i32
}
