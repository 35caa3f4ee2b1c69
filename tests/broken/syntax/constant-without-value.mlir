func.func @main() -> i32 {
  %x = tfrt.constant.i32
  tfrt.return %x : i32
}
