func.func @main() -> i32 {
  %x = "tfrt_test.async_add.i32"() : () -> i32
  tfrt.return %x : i32
}
