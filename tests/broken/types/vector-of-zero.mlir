func.func @main(%a: vector<0xi32>) {
  tfrt.return
}
