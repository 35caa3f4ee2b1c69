func.func @main() -> (i32, i32) {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32
}
