func.func @main() {
  "cf.br"()[^next] : () -> ()
  tfrt.return
^next:
  tfrt.return
}
