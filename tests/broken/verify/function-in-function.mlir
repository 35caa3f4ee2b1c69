func.func @main() {
  func.func @inner() {
    tfrt.return
  }
  tfrt.return
}
