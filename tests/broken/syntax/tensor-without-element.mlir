func.func @main(%a: tensor<2x3>) {
  tfrt.return
}
