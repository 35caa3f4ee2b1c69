func.func @main() {
  "tfrt_test.fial"() : () -> ()
  tfrt.return
}
