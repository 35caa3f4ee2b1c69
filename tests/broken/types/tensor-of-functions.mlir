func.func @main(%a: tensor<2x() -> i32>) {
  tfrt.return
}
