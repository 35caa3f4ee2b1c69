func.func @main() {
  %x = tfrt.constant.f32 1e3
  tfrt.return
}
