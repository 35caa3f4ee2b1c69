func.func @helper(%a: i32) -> i32
func.func @main() {
  tfrt.return
}
