func.func @main() {
  "cf.br"()[^next] : () -> ()
^nxt:
  tfrt.return
}
