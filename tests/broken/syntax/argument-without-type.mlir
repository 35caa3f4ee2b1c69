func.func @main(%a) {
  tfrt.return
}
