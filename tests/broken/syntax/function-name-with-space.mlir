func.func @my main() {
  tfrt.return
}
