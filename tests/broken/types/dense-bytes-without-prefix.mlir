func.func @main() attributes {a = dense<"01000000"> : tensor<1xi32>} {
  tfrt.return
}
