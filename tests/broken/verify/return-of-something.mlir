func.func @main() {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32
}
