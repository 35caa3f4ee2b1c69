func.func @main() {
  %x == tfrt.constant.i32 1
  %y : i32 = tfrt.constant.i32 1
  %z := tfrt.constant.i32 1
  tfrt.return
}
