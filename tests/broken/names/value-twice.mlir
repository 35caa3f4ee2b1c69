func.func @main() -> i32 {
  %x = tfrt.constant.i32 1
  %x = tfrt.constant.i32 2
  tfrt.return %x : i32
}
