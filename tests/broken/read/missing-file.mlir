// RUN: check tests/broken/read/nowhere.mlir
func.func @main() {
  tfrt.return
}
