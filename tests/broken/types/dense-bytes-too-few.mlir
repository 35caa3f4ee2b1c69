func.func @main() attributes {a = dense<"0x0100"> : tensor<2xi32>} {
  tfrt.return
}
