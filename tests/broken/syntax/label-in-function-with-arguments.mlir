func.func @main(%a: i32) {
^entry:
  tfrt.return
}
