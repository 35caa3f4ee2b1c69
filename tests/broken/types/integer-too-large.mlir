func.func @main() -> i32 {
  %x = tfrt.constant.i32 99999999999
  tfrt.return %x : i32
}
