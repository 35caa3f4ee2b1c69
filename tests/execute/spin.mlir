// RUN: run --print-error-code --deadline 200ms
// EXIT: 4

// A kernel that keeps its thread is not torn from it; it sees the cancellation itself.
// CHECK-LABEL: --- Running 'spin':
func.func @spin() -> i32 {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.spin"(%c0) : (!tfrt.chain) -> !tfrt.chain
  %x = tfrt.constant.i32 1
  %y = "tfrt.alias.value"(%c1, %x) : (!tfrt.chain, i32) -> i32
  tfrt.return %y : i32
}
// CHECK-NEXT: 'spin' returned <<error: Deadline exceeded: the time allowed was 200ms, code: DeadlineExceeded>>
