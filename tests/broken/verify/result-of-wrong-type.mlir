func.func @main() {
  %a = tfrt.constant.i32 1
  %x = "tfrt.add.i32"(%a, %a) : (i32, i32) -> i64
  tfrt.return
}
