func.func @main() attributes {a = dense<1> : i32} {
  tfrt.return
}
