func.func @main() -> i32 {
  %x = tfrt.call @m::@main() : () -> i32
  tfrt.return %x : i32
}
