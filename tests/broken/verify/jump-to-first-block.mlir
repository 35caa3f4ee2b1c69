func.func @main() {
^first:
  "cf.br"()[^first] : () -> ()
}
