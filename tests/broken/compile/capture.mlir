func.func @main(%a: i32) {
  "my.region"() ({
    "my.use"(%a) : (i32) -> ()
    tfrt.return
  }) : () -> ()
  tfrt.return
}
