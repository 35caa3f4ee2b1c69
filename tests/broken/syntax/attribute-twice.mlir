func.func @main() attributes {a = 1, a = 2} {
  tfrt.return
}
