func.func @main() {
  %t = tfrt.constant.i1 2
  tfrt.return
}
