func.func @main() {
  "日本語"() {名 = "値"} : () -> ()
  tfrt.return
}
