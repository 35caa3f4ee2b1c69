func.func @main(%c: i1, %a: i32) -> i32 {
  %x = tfrt.if %c, %a : (i32) -> (i32) {
    tfrt.return %a : i32
  }
  tfrt.return %x : i32
}
