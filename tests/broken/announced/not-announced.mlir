// RUN: opt --verify-diagnostics
func.func @main() {
  tfrt.retrun
  tfrt.return
}
