func.func @main() -> i32 {
  %x = "my.kernel"() : () -> i32
  tfrt.return %x : i32
}
