// RUN: run --print-error-code
// EXIT: 3

func.func @two(%from: i32, %to: i32) -> (!tfrt.chain, !tfrt.chain) {
  %c = tfrt.new.chain
  tfrt.return %c, %c : !tfrt.chain, !tfrt.chain
}

// CHECK-LABEL: --- Running 'block_size':
func.func @block_size() -> !tfrt.chain {
  %from = tfrt.constant.i32 0
  %to = tfrt.constant.i32 4
  %done = tfrt.parallel_for.i32 %from to %to fixed %from {
    tfrt.return
  }
  tfrt.return %done : !tfrt.chain
}
// CHECK-NEXT: 'block_size' returned <<error: expected a block size above 0, found 0, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'backwards':
func.func @backwards() -> !tfrt.chain {
  %from = tfrt.constant.i32 5
  %to = tfrt.constant.i32 4
  %done = tfrt.parallel_for.i32 %from to %to fixed %to {
    tfrt.return
  }
  tfrt.return %done : !tfrt.chain
}
// CHECK-NEXT: 'backwards' returned <<error: expected a range that does not end before it starts, found 5 to 4, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'two_chains':
func.func @two_chains() -> !tfrt.chain {
  %from = tfrt.constant.i32 0
  %to = tfrt.constant.i32 4
  %done = "tfrt.parallel_call.i32"(%from, %to, %to) {fn = @two} : (i32, i32, i32) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}
// CHECK-NEXT: 'two_chains' returned <<error: Invalid parallel body function result types, code: Unknown>>
