func.func @main(%a: i32) {
  %c = "tfrt.print.i32"(%a) : (i32) -> !tfrt.chain
  tfrt.return
}
