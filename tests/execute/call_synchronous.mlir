// RUN: run --max-depth 100

// A synchronous function may be called from any other; it runs when its arguments are there.
func.func @product(%x: i32, %y: i32) -> i32 attributes {tfrt.sync} {
  %z = tfrt.mul_s.i32 %x, %y
  tfrt.return %z : i32
}

func.func @turn(%x: i32) -> (i32, i1) attributes {tfrt.sync} {
  %limit = "tfrt.constant_s.i32"() {value = 1000 : i32} : () -> i32
  %y = "tfrt.add_s.i32"(%x, %x) : (i32, i32) -> i32
  %more = "tfrt.lessequal.i32"(%y, %limit) : (i32, i32) -> i1
  tfrt.return %y, %more : i32, i1
}

// CHECK-LABEL: --- Running 'call':
func.func @call() -> (i32, i32, i32) {
  %x = tfrt.constant.i32 6
  %y = "tfrt_test.async_constant.i32"() {value = 7 : i32} : () -> i32
  %z = tfrt.call @product(%x, %y) : (i32, i32) -> i32
  %true = tfrt.constant.i1 true
  %a = "tfrt.while"(%true, %x) {body_fn = @turn, parallel_iterations = 1 : i64} : (i1, i32) -> i32
  %b = "tfrt.while"(%true, %y) {body_fn = @turn, parallel_iterations = 2 : i64} : (i1, i32) -> i32
  tfrt.return %z, %a, %b : i32, i32, i32
}
// CHECK-NEXT: 'call' returned 42,1536,1792
