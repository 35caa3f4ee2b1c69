func.func @g(%c: !tfrt.chain, %x: i32) -> (i32, i32) {
  %a = tfrt.add.i32 %x, %x
  %b = "tfrt_test.k"(%a, %x) {tag = "hi", w = 2.0 : f64} : (i32, i32) -> i32
  tfrt.return %b, %b : i32, i32
}
