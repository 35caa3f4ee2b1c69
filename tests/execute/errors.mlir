// RUN: run --print-error-code
// EXIT: 3

// CHECK-LABEL: --- Running 'fail':
func.func @fail() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32
  tfrt.return %x : i32
}
// CHECK-NEXT: 'fail' returned <<error: something bad happened, code: Unknown>>

// CHECK-LABEL: --- Running 'partial_fail':
func.func @partial_fail() -> (i32, i32) {
  %x, %y = "tfrt_test.partial_fail"() : () -> (i32, i32)
  tfrt.return %x, %y : i32, i32
}
// CHECK-NEXT: 'partial_fail' returned 1,<<error: something bad happened, code: Unknown>>

// CHECK-LABEL: --- Running 'error_chain':
func.func @error_chain() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.error_chain"(%c0) : (!tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.print_hello"(%c1) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'error_chain' returned <<error: error chain, code: Unknown>>

// CHECK-LABEL: --- Running 'later':
func.func @later() -> (i32, i32, i32, i32, i32) {
  %0 = tfrt.constant.i32 0
  %1 = tfrt.constant.i32 1
  %a = "tfrt_test.report_error_async"() : () -> i32
  %b = "tfrt_test.report_error_concrete_async"(%0) : (i32) -> i32
  %c = "tfrt_test.report_error_concrete_async"(%1) : (i32) -> i32
  %d = "tfrt_test.report_error_indirect_async"(%0) : (i32) -> i32
  %e = "tfrt_test.report_error_indirect_async"(%1) : (i32) -> i32
  tfrt.return %a, %b, %c, %d, %e : i32, i32, i32, i32, i32
}
// CHECK-NEXT: 'later' returned <<error: something bad happened asynchronously, code: Unknown>>,0,<<error: something bad happened asynchronously, code: Unknown>>,0,<<error: something bad happened asynchronously, code: Unknown>>

// CHECK-LABEL: --- Running 'cancel':
func.func @cancel() -> (!tfrt.chain, i32) {
  %c0 = tfrt.new.chain
  %x, %c1 = "tfrt_test.cancel"(%c0) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %c2 = tfrt.print.i32 %x, %c1
  tfrt.return %c2, %x : !tfrt.chain, i32
}
// CHECK-NEXT: 'cancel' returned <<error: Cancelled, code: Cancelled>>,0

// CHECK-LABEL: --- Running 'no_data':
func.func @no_data() -> (i32, i32) {
  %x = "tfrt_test.get_request_context_data.i32"() : () -> i32
  %y = "tfrt_test.sum_array_attr.i32"() {a = "0x10", b = [1 : i32, 2 : i32]} : () -> i32
  tfrt.return %x, %y : i32, i32
}
// CHECK-NEXT: 'no_data' returned <<error: the request has no data of type i32, code: FailedPrecondition>>,<<error: the request has no data of type i32, code: FailedPrecondition>>

// CHECK-LABEL: --- Running 'bad_text':
func.func @bad_text() -> i64 {
  %y = "tfrt_test.sum_array_attr.i64"() {a = "ten", b = [1, 2]} : () -> i64
  tfrt.return %y : i64
}
// CHECK-NEXT: 'bad_text' returned <<error: Cannot convert ten to target int, code: Unknown>>
