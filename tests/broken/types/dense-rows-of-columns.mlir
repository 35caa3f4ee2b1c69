func.func @main() attributes {a = dense<[[1, 2], [3, 4], [5, 6]]> : tensor<2x3xi32>} {
  tfrt.return
}
