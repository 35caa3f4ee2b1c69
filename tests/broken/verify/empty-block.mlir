func.func @main() {
  "cf.br"()[^next] : () -> ()
^next:
}
