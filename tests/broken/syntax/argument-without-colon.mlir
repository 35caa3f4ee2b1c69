func.func @main(%a i32) {
  tfrt.return
}
