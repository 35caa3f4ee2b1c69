func.func @main() {
  %x = tfrt.constant.f32 .5
  tfrt.return
}
