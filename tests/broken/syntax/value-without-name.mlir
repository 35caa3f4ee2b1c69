func.func @main() -> i32 {
  % = tfrt.constant.i32 1
  tfrt.return %x : i32
}
