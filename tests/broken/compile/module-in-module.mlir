module @inner {
}
func.func @main() {
  tfrt.return
}
