func.func @main() {
  %a = tfrt.constant.i32 1
  %x:2 = "tfrt.add.i32"(%a, %a) : (i32, i32) -> (i32, i32)
  tfrt.return
}
