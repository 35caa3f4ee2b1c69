func.func @1st() {
  tfrt.return
}
