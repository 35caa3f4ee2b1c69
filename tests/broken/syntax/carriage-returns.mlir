func.func @main() {
  tfrt.retrun
  %x = tfrt.constant.i32 one
  tfrt.return
}
