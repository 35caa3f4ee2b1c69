func.func @main(%x : i32) -> i32 {
  i32 %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
