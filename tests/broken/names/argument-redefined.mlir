func.func @main(%a: i32) -> i32 {
  %a = tfrt.add.i32 %a, %a
  tfrt.return %a : i32
}
