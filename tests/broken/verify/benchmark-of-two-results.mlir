func.func @main(%a: i32) {
  %c = tfrt_test.benchmark "add"(%a : i32) duration_secs = 1, max_count = 10 {
    %b = tfrt.add.i32 %a, %a
    tfrt.return %b, %b : i32, i32
  }
  tfrt.return
}
