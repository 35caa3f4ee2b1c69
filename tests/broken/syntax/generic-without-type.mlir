func.func @main() -> i32 {
  %a = tfrt.constant.i32 1
  %x = "tfrt.add.i32"(%a, %a)
  tfrt.return %x : i32
}
