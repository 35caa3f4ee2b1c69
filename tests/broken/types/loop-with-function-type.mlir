func.func @main(%n: i32, %a: i32) -> i32 {
  %x = tfrt.repeat.i32 %n, %a : (i32) -> i32 {
    tfrt.return %a : i32
  }
  tfrt.return %x : i32
}
