func.func @main() {
  // café
  tfrt.return
}
