func.func @main() attributes {a = dense<1.0> : tensor<2xcomplex<f32>>} {
  tfrt.return
}
