func.func @main() attributes {a = dense<1> : tensor<?xi32>} {
  tfrt.return
}
