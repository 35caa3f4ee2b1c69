# A program.
func.func @main() {
  tfrt.return
}
