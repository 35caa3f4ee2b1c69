func.func @main() -> i32 {
  %x = tfrt.call @sqaure() : () -> i32
  tfrt.return %x : i32
}
func.func @square() -> i32 {
  %x = tfrt.constant.i32 4
  tfrt.return %x : i32
}
