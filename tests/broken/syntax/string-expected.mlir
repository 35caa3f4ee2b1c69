func.func @main() {
  %s = "tfrt_test.get_string"() {value = string} : () -> !tfrt.string
  tfrt.return
}
