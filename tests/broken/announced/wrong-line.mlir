// RUN: opt --verify-diagnostics
func.func @main() {
  // expected-error {{is unknown}}
  tfrt.retrun
  tfrt.return
}
