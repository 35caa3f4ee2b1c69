!number = i32
func.func @main(%a: !nubmer) {
  tfrt.return
}
