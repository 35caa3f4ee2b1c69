func.func @main(%a: i32 %b: i32) {
  tfrt.return
}
