func.func @main() {
  %a = tfrt.constant.i32 1
  %x = "tfrt_test.async_copy.i32"(%a) : (i32) -> f32
  tfrt.return
}
