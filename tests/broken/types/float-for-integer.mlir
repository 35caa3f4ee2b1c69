func.func @main() -> i32 {
  %x = tfrt.constant.i32 1.5
  tfrt.return %x : i32
}
