func.func @main() {
  /* nothing */
  tfrt.return
}
