// RUN: opt --verify-diagnostics
func.func @main() {
  // expected-error @+1 {{is unknown}}
  tfrt.return
}
