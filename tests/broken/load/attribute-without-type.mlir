func.func @main() -> i32 {
  %x = "tfrt_test.async_constant.i32"() {value = 1} : () -> i32
  tfrt.return %x : i32
}
