func.func @main() {
  %a, %b = tfrt.constant.i32 1
  tfrt.return
}
