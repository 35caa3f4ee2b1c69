// RUN: run --print-error-code
// EXIT: 3

func.func @same(%x: i32) -> i32 {
  tfrt.return %x : i32
}

// CHECK-LABEL: --- Running 'too_large':
func.func @too_large() -> i32 {
  %i = tfrt.constant.i32 2
  %r = tfrt.case %i [@same, @same] (%i) : (i32) -> (i32)
  tfrt.return %r : i32
}
// CHECK-NEXT: 'too_large' returned <<error: branch_index invalid. branch index: 2 # branches: 2, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'negative':
func.func @negative() -> i32 {
  %i = tfrt.constant.i32 -1
  %r = tfrt.case %i [@same, @same] (%i) : (i32) -> (i32)
  tfrt.return %r : i32
}
// CHECK-NEXT: 'negative' returned <<error: branch_index invalid. branch index: -1 # branches: 2, code: InvalidArgument>>
