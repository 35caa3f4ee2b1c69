func.func @main() -> i32 {
  %x = tfrt.cоnstant.i32 1
  tfrt.return %x : i32
}
