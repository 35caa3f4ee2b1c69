func.func @main() -> i32 {
  %x = my.kernel
  tfrt.return %x : i32
}
