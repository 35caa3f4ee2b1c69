// RUN: run
// EXIT: 3

// Cancelling stops a request at the next kernel: what has not started yet fails with `Cancelled`.
// Here a kernel cancels; `--deadline` and Ctrl-C do the same from outside, and so does
// `Context::cancel` of the library.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> !tfrt.chain {
  %start = tfrt.new.chain
  %number = tfrt.constant.i32 1
  // CHECK-NEXT: int32 = 1
  %before = tfrt.print.i32 %number, %start

  %zero, %cancelled = "tfrt_test.cancel"(%before) : (!tfrt.chain) -> (i32, !tfrt.chain)

  // CHECK-NOT: int32
  %after = tfrt.print.i32 %number, %cancelled
  tfrt.return %after : !tfrt.chain
}
// CHECK: 'main' returned <<error: Cancelled>>
