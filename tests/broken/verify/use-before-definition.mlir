func.func @main() -> i32 {
  %x = tfrt.add.i32 %y, %y
  %y = tfrt.constant.i32 1
  tfrt.return %x : i32
}
