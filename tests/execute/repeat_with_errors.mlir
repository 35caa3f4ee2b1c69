// RUN: run --print-error-code
// EXIT: 3

// CHECK-LABEL: --- Running 'negative':
func.func @negative() -> i32 {
  %n = tfrt.constant.i32 -1
  %a = tfrt.repeat.i32 %n, %n : i32 {
    tfrt.return %n : i32
  }
  tfrt.return %a : i32
}
// CHECK-NEXT: 'negative' returned <<error: expected a repeat count that is not negative, found -1, code: InvalidArgument>>

// Once a value is an error, it stays one; the other goes on.
// CHECK-LABEL: --- Running 'failing':
func.func @failing() -> (i32, i32) {
  %n = tfrt.constant.i32 3
  %x = tfrt.constant.i32 1
  %y = tfrt.constant.i32 0
  %a, %b = tfrt.repeat.i32 %n, %x, %y : i32, i32 {
    %one = tfrt.constant.i32 1
    %z = "tfrt.minus.i32"(%x, %one) : (i32, i32) -> i32
    %q, %r = tfrt.div.i32 %one, %z
    %w = tfrt.add.i32 %y, %one
    tfrt.return %q, %w : i32, i32
  }
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'failing' returned <<error: Divide by zero, code: Unknown>>,3

// The turn after the cancellation does not begin.
// CHECK-LABEL: --- Running 'cancelled':
func.func @cancelled() -> i32 {
  %n = tfrt.constant.i32 1000000000
  %x = tfrt.constant.i32 1
  %c = tfrt.new.chain
  // CHECK-NEXT: int32 = 1
  %a, %b = tfrt.repeat.i32 %n, %x, %c : i32, !tfrt.chain {
    %c1 = tfrt.print.i32 %x, %c
    %y, %c2 = "tfrt_test.cancel"(%c1) : (!tfrt.chain) -> (i32, !tfrt.chain)
    tfrt.return %y, %c2 : i32, !tfrt.chain
  }
  tfrt.return %a : i32
}
// CHECK-NEXT: 'cancelled' returned <<error: Cancelled, code: Cancelled>>
