func.func @main() attributes {a = "\u00e9"} {
  tfrt.return
}
