func.func @main() {
  %x = tfrt.constant.f32 0x1FF800000
  tfrt.return
}
