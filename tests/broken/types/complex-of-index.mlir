func.func @main(%a: complex<index>) {
  tfrt.return
}
