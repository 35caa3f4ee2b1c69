func.func %main() {
  tfrt.return
}
