func.func @one() {
  %a = tfrt.constant.i32 1
  tfrt.return
}
func.func @main() -> i32 {
  %x = tfrt.add.i32 %a, %a
  tfrt.return %x : i32
}
