func.func @main() {
  "my.op"() {a = "日本語のテキスト", b = } : () -> ()
  tfrt.return
}
