// RUN: run

// Counts %i down to 1 and sums up.
func.func @sum(%i: i32, %sum: i32) -> (i32, i32, i1) {
  %one = tfrt.constant.i32 1
  %next_sum = tfrt.add.i32 %sum, %i
  %next = "tfrt.minus.i32"(%i, %one) : (i32, i32) -> i32
  %more = "tfrt.lessequal.i32"(%one, %next) : (i32, i32) -> i1
  tfrt.return %next, %next_sum, %more : i32, i32, i1
}

// The same, but everything comes later.
func.func @sum_later(%i: i32, %sum: i32) -> (i32, i32, i1) {
  %one = "tfrt_test.async_constant.i32"() {value = 1 : i32} : () -> i32
  %next_sum = "tfrt_test.async_add.i32"(%sum, %i) : (i32, i32) -> i32
  %next = "tfrt.minus.i32"(%i, %one) : (i32, i32) -> i32
  %more = "tfrt.lessequal.i32"(%one, %next) : (i32, i32) -> i1
  tfrt.return %next, %next_sum, %more : i32, i32, i1
}

// Prints each turn, in order.
func.func @print(%i: i32, %ch: !tfrt.chain) -> (i32, !tfrt.chain, i1) {
  %one = tfrt.constant.i32 1
  %ch1 = tfrt.print.i32 %i, %ch
  %next = "tfrt.minus.i32"(%i, %one) : (i32, i32) -> i32
  %more = "tfrt.lessequal.i32"(%one, %next) : (i32, i32) -> i1
  tfrt.return %next, %ch1, %more : i32, !tfrt.chain, i1
}

// CHECK-LABEL: --- Running 'inline':
func.func @inline() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 1000
  %zero = tfrt.constant.i32 0
  %i, %sum = tfrt.while %true @sum(%n, %zero) parallel_iterations(1) : (i32, i32) -> (i32, i32)
  tfrt.return %i, %sum : i32, i32
}
// CHECK-NEXT: 'inline' returned 0,500500

// CHECK-LABEL: --- Running 'inline_later':
func.func @inline_later() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 100
  %zero = tfrt.constant.i32 0
  %i, %sum = tfrt.while %true @sum_later(%n, %zero) parallel_iterations(1) : (i32, i32) -> (i32, i32)
  tfrt.return %i, %sum : i32, i32
}
// CHECK-NEXT: 'inline_later' returned 0,5050

// CHECK-LABEL: --- Running 'spawned':
func.func @spawned() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 1000
  %zero = tfrt.constant.i32 0
  %i, %sum = tfrt.while %true @sum(%n, %zero) parallel_iterations(10) : (i32, i32) -> (i32, i32)
  tfrt.return %i, %sum : i32, i32
}
// CHECK-NEXT: 'spawned' returned 0,500500

// CHECK-LABEL: --- Running 'spawned_later':
func.func @spawned_later() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 100
  %zero = tfrt.constant.i32 0
  %i, %sum = tfrt.while %true @sum_later(%n, %zero) parallel_iterations(2) : (i32, i32) -> (i32, i32)
  tfrt.return %i, %sum : i32, i32
}
// CHECK-NEXT: 'spawned_later' returned 0,5050

// CHECK-LABEL: --- Running 'printing':
func.func @printing() -> !tfrt.chain {
  %true = tfrt.constant.i1 true
  %n = tfrt.constant.i32 2
  %c0 = tfrt.new.chain
  // CHECK-NEXT: int32 = 2
  // CHECK-NEXT: int32 = 1
  %i, %c1 = tfrt.while %true @print(%n, %c0) parallel_iterations(1) : (i32, !tfrt.chain) -> (i32, !tfrt.chain)
  // CHECK-NEXT: int32 = 2
  // CHECK-NEXT: int32 = 1
  %j, %c2 = tfrt.while %true @print(%n, %c1) parallel_iterations(4) : (i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'printing' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'no_turn':
func.func @no_turn() -> (i32, i32) {
  %false = tfrt.constant.i1 false
  %n = tfrt.constant.i32 7
  %i, %sum = tfrt.while %false @sum(%n, %n) parallel_iterations(1) : (i32, i32) -> (i32, i32)
  tfrt.return %i, %sum : i32, i32
}
// CHECK-NEXT: 'no_turn' returned 7,7
