func.func @main() -> i32 {
  tfrt.constant.i32 1
  tfrt.return %0 : i32
}
