func.func @main() -> i32 {
  %x = tfrt.call @inner() : () -> i32
  tfrt.return %x : i32
}
module @m attributes {tfrt.compiled} {
  func.func @inner() -> i32 {
    %x = tfrt.constant.i32 4
    tfrt.return %x : i32
  }
}
