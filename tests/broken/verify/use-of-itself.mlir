func.func @main() -> i32 {
  %x = tfrt.add.i32 %x, %x
  tfrt.return %x : i32
}
