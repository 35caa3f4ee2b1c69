func.func @main(%a: i32) {
  "tfrt.print.i32"(%a) : i32 -> !tfrt.chain
  "tfrt.print.i32" %a : (i32) -> !tfrt.chain
  "tfrt.new.chain"() : -> !tfrt.chain
  tfrt.return
}
