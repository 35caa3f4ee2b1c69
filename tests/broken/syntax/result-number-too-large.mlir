func.func @main() {
  %a:2 = "my.two"() : () -> (i32, i32)
  "my.use"(%a#99999999999) : (i32) -> ()
  tfrt.return
}
