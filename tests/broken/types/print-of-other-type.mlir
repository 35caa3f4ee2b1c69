func.func @main(%a: i64, %c: !tfrt.chain) {
  %d = tfrt.print.i32 %a, %c
  tfrt.return
}
