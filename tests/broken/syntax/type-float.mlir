func.func @main(%a: float) {
  tfrt.return
}
