func.func @main() attributes {a = -1 : ui8} {
  tfrt.return
}
