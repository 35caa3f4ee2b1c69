func.func @main() attributes {a = array<index: 1, 2>} {
  tfrt.return
}
