// RUN: run --print-error-code
// EXIT: 3

// How results of each type are shown.

// CHECK: --- Running 'scalars':
// CHECK-NEXT: 'scalars' returned 1,-7,77777777777,1.500000e+00,-1.500000e+10
func.func @scalars() -> (i1, i32, i64, f32, f64) {
  %a = tfrt.constant.i1 1
  %b = tfrt.constant.i32 -7
  %c = tfrt.constant.i64 77777777777
  %d = tfrt.constant.f32 1.5
  %e = tfrt.constant.f64 -1.5e10
  tfrt.return %a, %b, %c, %d, %e : i1, i32, i64, f32, f64
}

// CHECK-NEXT: --- Running 'others':
// CHECK-NEXT: 'others' returned !tfrt.chain value,!tfrt.string value
func.func @others() -> (!tfrt.chain, !tfrt.string) {
  %a = tfrt.new.chain
  %b = "tfrt_test.get_string"() {value = "text"} : () -> !tfrt.string
  tfrt.return %a, %b : !tfrt.chain, !tfrt.string
}

// CHECK-NEXT: --- Running 'nothing':
// CHECK-NEXT: --- Running 'error':
func.func @nothing() {
  tfrt.return
}

// CHECK-NEXT: 'error' returned 1,<<error: something bad happened, code: Unknown>>
// STDERR: results.mlir:[[@LINE+3]]:{{[0-9]+}}: error: runtime error: something bad happened
func.func @error() -> (i32, i32) {
  %a = tfrt.constant.i32 1
  %b = "tfrt_test.fail"() : () -> i32
  tfrt.return %a, %b : i32, i32
}

// A function that runs in order fails as a whole.
// CHECK-NEXT: --- Running 'in_order':
// CHECK-NEXT: 'in_order' returned <<error: something bad happened>>
func.func @in_order() -> (i32, i32) attributes {tfrt.sync} {
  %b = "tfrt_test.fail_s"() : () -> i32
  %c = "tfrt.constant_s.i32"() {value = 1 : i32} : () -> i32
  tfrt.return %b, %c : i32, i32
}
