func.func @main() {
  "tfrt.ret
  tfrt.return
}
