func.func @main() {
  "no.such"() : () -> () loc("the third step")
  tfrt.return
}
