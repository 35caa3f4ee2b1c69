func.func @main() attributes {a = dense<> : tensor<2xi32>} {
  tfrt.return
}
