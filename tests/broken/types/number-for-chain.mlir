func.func @main(%a: i32) {
  %d = tfrt.print.i32 %a, %a
  tfrt.return
}
