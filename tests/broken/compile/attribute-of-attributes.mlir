func.func @main() {
  "my.op"() {a = {b = 1 : i32}} : () -> ()
  tfrt.return
}
