func.func @main() -> i32 {
  %x = tfrt_test.fail
  tfrt.return %x : i32
}
