func.func @main() {
  "no.such"() : () -> ()
  "nor.this"() : () -> ()
  "nor.that"() : () -> ()
  tfrt.return
}
