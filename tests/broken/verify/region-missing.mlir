func.func @main() -> i32 {
  %x = "tfrt_test.do.async"() : () -> i32
  tfrt.return %x : i32
}
