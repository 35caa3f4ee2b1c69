// RUN: run
// EXIT: 3

// The second turn's condition is an error.
func.func @fails(%x: i32, %y: i32) -> (i32, i32, i1) {
  %five = tfrt.constant.i32 5
  %q, %r = tfrt.div.i32 %five, %x
  %one = tfrt.constant.i32 1
  %next = "tfrt.minus.i32"(%x, %one) : (i32, i32) -> i32
  %more = "tfrt.lessequal.i32"(%q, %five) : (i32, i32) -> i1
  tfrt.return %next, %y, %more : i32, i32, i1
}

// A value is an error, the condition is not.
func.func @value_fails(%x: i32, %y: i32) -> (i32, i32, i1) {
  %z = "tfrt_test.fail"() : () -> i32
  %false = tfrt.constant.i1 false
  tfrt.return %x, %z, %false : i32, i32, i1
}

// CHECK-LABEL: --- Running 'condition_inline':
func.func @condition_inline() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 1
  %a, %b = tfrt.while %true @fails(%n, %n) parallel_iterations(1) : (i32, i32) -> (i32, i32)
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'condition_inline' returned <<error: Divide by zero>>,<<error: Divide by zero>>

// CHECK-LABEL: --- Running 'condition_spawned':
func.func @condition_spawned() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 1
  %a, %b = tfrt.while %true @fails(%n, %n) parallel_iterations(2) : (i32, i32) -> (i32, i32)
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'condition_spawned' returned <<error: Divide by zero>>,<<error: Divide by zero>>

// CHECK-LABEL: --- Running 'value':
func.func @value() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 9
  %a, %b = tfrt.while %true @value_fails(%n, %n) parallel_iterations(1) : (i32, i32) -> (i32, i32)
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'value' returned 9,<<error: something bad happened>>
