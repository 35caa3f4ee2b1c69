func.func @main() attributes {1 = 2} {
  tfrt.return
}
