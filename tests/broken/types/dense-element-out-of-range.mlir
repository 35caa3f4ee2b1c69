func.func @main() attributes {a = dense<[1, 256]> : tensor<2xi8>} {
  tfrt.return
}
