func.func @main() attributes {a = dense<[true, false]> : tensor<2xi32>} {
  tfrt.return
}
