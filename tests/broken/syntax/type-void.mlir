func.func @main() -> void {
  tfrt.return
}
