func.func @main(%a: i32) -> i32 {
  tfrt.return %a
}
