func.func @main() {
  tfrt.return
  tfrt.return
}
