func.func @main() -> i32 {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32
  %y = tfrt.constant.i32 2
}
