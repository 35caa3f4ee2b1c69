func.func @main() -> i32 {
  %count = tfrt.constant.i32 1
  %x = tfrt.add.i32 %cuont, %count
  tfrt.return %x : i32
}
