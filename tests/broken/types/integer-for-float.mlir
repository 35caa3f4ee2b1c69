func.func @main() {
  %x = tfrt.constant.f32 1
  tfrt.return
}
