// RUN: check /dev/zero
func.func @main() {
  tfrt.return
}
