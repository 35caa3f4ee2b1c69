func.func @main() -> i32 {
  %n = tfrt.constant.i32 1
  %x = tfrt.repeat.i32 %n, %n : i32 {
    tfrt.return
  }
  tfrt.return %x : i32
}
