func.func @main() -> i32 {
  %a = tfrt.constant.i32 1
  %x = "tfrt.add.i32"(%a, %a) : (i32) -> i32
  tfrt.return %x : i32
}
