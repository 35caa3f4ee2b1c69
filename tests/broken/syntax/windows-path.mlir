func.func @main() attributes {a = "C:\users"} {
  tfrt.return
}
