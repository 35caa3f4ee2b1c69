// RUN: run --print-error-code
// EXIT: 3

// CHECK-LABEL: --- Running 'block_size':
func.func @block_size() -> !tfrt.chain {
  %from = tfrt.constant.i32 0
  %to = tfrt.constant.i32 4
  %zero = tfrt.constant.i32 0
  %done = tfrt.parallel_for.i32 %from to %to fixed %zero {
    tfrt.return
  }
  tfrt.return %done : !tfrt.chain
}
// CHECK-NEXT: 'block_size' returned <<error: expected a block size above 0, found 0, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'backwards':
func.func @backwards() -> !tfrt.chain {
  %from = tfrt.constant.i32 5
  %to = tfrt.constant.i32 4
  %size = tfrt.constant.i32 1
  %done = tfrt.parallel_for.i32 %from to %to fixed %size {
    tfrt.return
  }
  tfrt.return %done : !tfrt.chain
}
// CHECK-NEXT: 'backwards' returned <<error: expected a range that does not end before it starts, found 5 to 4, code: InvalidArgument>>
