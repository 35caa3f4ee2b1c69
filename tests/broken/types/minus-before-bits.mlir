func.func @main() {
  %x = tfrt.constant.f32 -0x3F800000
  tfrt.return
}
