// RUN: run --print-error-code
// EXIT: 3

func.func @nothing() -> i1 {
  %false = tfrt.constant.i1 false
  tfrt.return %false : i1
}

func.func @no_condition(%x: i32) -> i32 {
  tfrt.return %x : i32
}

// CHECK-LABEL: --- Running 'without_values':
func.func @without_values() {
  %true = tfrt.constant.i1 true
  "tfrt.while"(%true) {body_fn = @nothing, parallel_iterations = 1 : i64} : (i1) -> ()
  tfrt.return
}

// CHECK-LABEL: --- Running 'without_condition':
func.func @without_condition() -> i32 {
  %true = tfrt.constant.i1 true
  %x = tfrt.constant.i32 1
  %y = "tfrt.while"(%true, %x) {body_fn = @no_condition, parallel_iterations = 1 : i64} : (i1, i32) -> i32
  tfrt.return %y : i32
}
// CHECK-NEXT: 'without_condition' returned <<error: expected a body of 1 arguments and 2 results, found 1 and 1, code: InvalidArgument>>
// STDERR: tfrt.while needs at least one loop value
