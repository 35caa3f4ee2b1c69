func.func @main(%a: int) {
  tfrt.return
}
