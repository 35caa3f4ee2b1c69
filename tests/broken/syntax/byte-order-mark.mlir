func.func @main() {
  tfrt.retrun
  tfrt.return
}
