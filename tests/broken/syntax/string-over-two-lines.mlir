func.func @main() {
  "my.op"() {text = "one
    two"} : () -> ()
  tfrt.return
}
