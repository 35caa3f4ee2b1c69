func.func @main() {
  %x = tfrt.constant.f64 1.0e400
  tfrt.return
}
