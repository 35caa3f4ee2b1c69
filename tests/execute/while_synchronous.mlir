// RUN: run

// The turns of a loop over a synchronous body take no stack.

func.func @body(%n: i32) -> (i32, i1) attributes {tfrt.sync} {
  %minus_one = "tfrt.constant_s.i32"() {value = -1 : i32} : () -> i32
  %left = "tfrt.add_s.i32"(%n, %minus_one) : (i32, i32) -> i32
  %one = "tfrt.constant_s.i32"() {value = 1 : i32} : () -> i32
  %more = "tfrt.lessequal.i32"(%one, %left) : (i32, i32) -> i1
  tfrt.return %left, %more : i32, i1
}

// CHECK-LABEL: --- Running 'main':
func.func @main() -> i32 {
  %n = tfrt.constant.i32 200000
  %true = tfrt.constant.i1 true
  %left = tfrt.while %true @body(%n) parallel_iterations(1) : (i32) -> (i32)
  // CHECK-NEXT: 'main' returned 0
  tfrt.return %left : i32
}
