func.func @main() attributes {a = 1 : tensor<i32>} {
  tfrt.return
}
