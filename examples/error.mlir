// RUN: run
// EXIT: 3

// An error is a value. It flows to whatever needs it, skipping kernels on its way; what does not
// need it goes on. It is told once, with the place of the kernel that failed.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> (i32, i32, i32) {
  %start = tfrt.new.chain
  %six = tfrt.constant.i32 6
  %zero = tfrt.constant.i32 0

  // STDERR: error.mlir:[[@LINE+1]]:{{[0-9]+}}: error: runtime error: Divide by zero
  %quotient, %remainder = tfrt.div.i32 %six, %zero

  // Skipped, since one of its operands has failed.
  %sum = tfrt.add.i32 %quotient, %six
  // CHECK-NOT: int32
  %printed = tfrt.print.i32 %sum, %start

  // Not touched.
  %twelve = tfrt.add.i32 %six, %six

  tfrt.return %sum, %twelve, %remainder : i32, i32, i32
}
// CHECK: 'main' returned <<error: Divide by zero>>,12,<<error: Divide by zero>>
