func.func @main() {
  %a = tfrt.constant.f32 1
  %b = tfrt.constant.f32 1.0f
  %c = tfrt.constant.f32 -.5
  %d = tfrt.constant.f32 nan
  %e = tfrt.constant.f64 1e-3
  tfrt.return
}
