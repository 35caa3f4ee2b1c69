// RUN: run --queue single

// Nothing waits for what is printed in the second stream: that runs after the results were shown, as it
// does when kernels are counted.
// CHECK-LABEL: --- Running 'late':
// CHECK-NEXT: 'late' returned !tfrt.chain value
// CHECK-NEXT: int32 = 1
func.func @late() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %c = tfrt.print.i32 %one, %ch
  tfrt.return %ch : !tfrt.chain
}

// CHECK-NEXT: --- Running 'waited_for':
// CHECK-NEXT: int32 = 1
// CHECK-NEXT: 'waited_for' returned !tfrt.chain value
func.func @waited_for() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %c = tfrt.print.i32 %one, %ch
  tfrt.return %c : !tfrt.chain
}
