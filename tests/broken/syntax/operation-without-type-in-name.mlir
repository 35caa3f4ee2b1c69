func.func @main() -> i32 {
  %x = tfrt.constant 1 : i32
  tfrt.return %x : i32
}
