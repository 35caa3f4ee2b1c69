func.func @main() -> i32 {
  %x = tfrt.constant.i32 one
  tfrt.return %x : i32
}
