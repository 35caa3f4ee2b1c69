func.func @main() attributes {a = 256 : i8} {
  tfrt.return
}
