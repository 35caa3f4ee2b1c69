func.func @main(%a: !my.list<(i32>) {
  tfrt.return
}
