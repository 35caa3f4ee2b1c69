func.func @main() -> (i32, i64) {
  %x = tfrt.constant.i32 1
  tfrt.return %x, %x : i32, i32
}
