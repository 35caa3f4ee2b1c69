func.func @main() {
  "no.such"() : () -> () loc("generator.py":7:3)
  tfrt.return
}
