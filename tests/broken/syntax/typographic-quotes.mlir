func.func @main() attributes {name = “main”} {
  tfrt.return
}
