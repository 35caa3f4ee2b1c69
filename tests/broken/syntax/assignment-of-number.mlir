func.func @main() -> i32 {
  %x = 1
  tfrt.return %x : i32
}
