func.func @main(%a: i32) {
  tfrt.print.i32 %a
  tfrt.return
}
