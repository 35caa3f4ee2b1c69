func.func @main() {
  %a = "my.op"() : () -> ()
  tfrt.return
}
