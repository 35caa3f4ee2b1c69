func.func @main(%a: i32, %a: i32) {
  tfrt.return
}
