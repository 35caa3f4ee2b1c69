func.func @main() -> i32 {
  %a = tfrt.constant.f32 1.0
  %x = "tfrt_test.async_add.i32"(%a, %a) : (f32, f32) -> i32
  tfrt.return %x : i32
}
