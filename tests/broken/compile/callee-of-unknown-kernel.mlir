func.func @main() {
  "my.kernel"() {callee = @nobody} : () -> ()
  tfrt.return
}
