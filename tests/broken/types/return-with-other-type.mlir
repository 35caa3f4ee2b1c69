func.func @main() -> i32 {
  %x = tfrt.constant.i64 1
  tfrt.return %x : i32
}
