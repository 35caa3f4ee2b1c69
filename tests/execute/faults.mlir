// RUN: run --print-error-code --max-memory 10M
// EXIT: 5

// CHECK-LABEL: --- Running 'panic':
func.func @panic() -> i32 {
  %x = "tfrt_test.panic"() : () -> i32
  tfrt.return %x : i32
}
// CHECK-NEXT: 'panic' returned <<error: the kernel panicked: tfrt_test.panic panics, code: Internal>>

// The message names the kernel unless another thread drops the promise before the kernel has returned.
// STDERR: faults.mlir:15:8: error: runtime error: {{.*}} promise {{.*}}resolv
// CHECK-LABEL: --- Running 'drop_promise':
func.func @drop_promise() -> i32 {
  %x = "tfrt_test.drop_promise"() : () -> i32
  tfrt.return %x : i32
}
// CHECK-NEXT: 'drop_promise' returned <<error: {{.*}} promise {{.*}}, code: Internal>>

// CHECK-LABEL: --- Running 'wrong_result_count':
func.func @wrong_result_count() -> i32 {
  %x = "tfrt_test.wrong_result_count"() : () -> i32
  tfrt.return %x : i32
}
// CHECK-NEXT: 'wrong_result_count' returned <<error: the kernel gave 2 results where 1 are expected, code: Internal>>

// CHECK-LABEL: --- Running 'allocate':
func.func @allocate() -> (!tfrt.chain, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.allocate"(%c0) {bytes = 100000000} : (!tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.allocate"(%c0) {bytes = -1} : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c1, %c2 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'allocate' returned <<error: cannot allocate 100000000 bytes, code: ResourceExhausted>>,<<error: cannot ask for -1 bytes, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'external':
func.func @external() -> i32 {
  %x = tfrt.constant.i32 3
  %y = "tfrt_test.external"(%x) : (i32) -> i32
  tfrt.return %y : i32
}
// CHECK-NEXT: 'external' returned 3
