func.func @main(%a: !chain) {
  tfrt.return
}
