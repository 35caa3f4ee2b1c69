func.func @main(%a: i32) {
  %x = tfrt_test.test_cost %a {id = 1 : i64, _tfrt_cost = 0 : i64} : i32
  tfrt.return
}
