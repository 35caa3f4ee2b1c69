// RUN: opt --verify-diagnostics --split-input-file
func.func @main() {
  tfrt.return
}
// -----
func.func @other() {
  tfrt.retrun
  tfrt.return
}
