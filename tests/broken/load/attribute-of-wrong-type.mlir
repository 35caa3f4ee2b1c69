func.func @main() -> i32 {
  %x = "tfrt_test.async_constant.i32"() {value = "s"} : () -> i32
  tfrt.return %x : i32
}
