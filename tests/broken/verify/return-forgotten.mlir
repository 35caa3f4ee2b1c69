func.func @main() {
  %x = tfrt.constant.i32 1
}
