func.func @main() {
  tfrt.return
^more:
  tfrt.return
}
