// RUN: opt --verify-diagnostics
func.func @main() {
  // expected-error @next {{is unknown}}
  tfrt.return
}
