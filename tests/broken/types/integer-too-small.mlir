func.func @main() -> i32 {
  %x = tfrt.constant.i32 -2147483649
  tfrt.return %x : i32
}
