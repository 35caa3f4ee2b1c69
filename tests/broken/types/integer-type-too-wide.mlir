func.func @main(%a: i16777216) {
  tfrt.return
}
