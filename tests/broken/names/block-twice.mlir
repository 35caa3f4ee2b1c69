func.func @main() {
  "cf.br"()[^next] : () -> ()
^next:
  func.return
^next:
  func.return
}
