func.func @main(%n: i32, %a: i32) -> (i32, i32) {
  %x, %y = tfrt.repeat.i32 %n, %a, %a : i32, i32 {
    tfrt.return %a, %a : i32, i32
  }
  tfrt.return %x, %y : i32, i32
}
