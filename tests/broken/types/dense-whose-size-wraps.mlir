func.func @main() attributes {a = dense<1> : tensor<4294967296x4294967296xi32>} {
  tfrt.return
}
