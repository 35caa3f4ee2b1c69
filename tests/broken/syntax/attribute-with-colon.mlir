func.func @main() attributes {a : 1} {
  tfrt.return
}
