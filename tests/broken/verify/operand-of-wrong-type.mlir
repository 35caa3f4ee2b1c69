func.func @main() -> i32 {
  %a = tfrt.constant.i64 1
  %x = "tfrt.add.i32"(%a, %a) : (i64, i64) -> i32
  tfrt.return %x : i32
}
