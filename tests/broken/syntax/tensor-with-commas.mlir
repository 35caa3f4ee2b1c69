func.func @main(%a: tensor<2, 3, i32>) {
  tfrt.return
}
