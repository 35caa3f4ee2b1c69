func.func @main() attributes {a = array<i8: 1, 300>} {
  tfrt.return
}
