func.func @main() -> i32 {
  %x = tfrt.call @nobody() : () -> i32
  tfrt.return %x : i32
}
