func.func @main() attributes {a = dense<["a", "b"]> : tensor<2xi32>} {
  tfrt.return
}
