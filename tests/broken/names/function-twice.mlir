func.func @main() {
  tfrt.return
}
func.func @main() {
  tfrt.return
}
