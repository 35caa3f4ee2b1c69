// RUN: check tests/broken/read
func.func @main() {
  tfrt.return
}
