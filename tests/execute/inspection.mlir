// RUN: run

// CHECK-LABEL: --- Running 'print':
func.func @print() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %true = tfrt.constant.i1 true
  %false = tfrt.constant.i1 false
  // CHECK-NEXT: hello host executor!
  %c1 = "tfrt_test.print_hello"(%c0) : (!tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: true
  %c2 = "tfrt_test.print_bool"(%c1, %true) : (!tfrt.chain, i1) -> !tfrt.chain
  // CHECK-NEXT: false
  %c3 = "tfrt_test.print_bool"(%c2, %false) : (!tfrt.chain, i1) -> !tfrt.chain
  // CHECK-NEXT: a/name
  %c4 = "tfrt_test.print_debug_info"(%c3) : (!tfrt.chain) -> !tfrt.chain loc("a/name")
  // CHECK-NEXT: Kernel has no debug info
  %c5 = "tfrt_test.print_debug_info"(%c4) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c5 : !tfrt.chain
}
// CHECK-NEXT: 'print' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'cost':
func.func @cost() -> i32 {
  %x = tfrt.constant.i32 5
  // CHECK-NEXT: id: 12
  %r = tfrt_test.test_cost %x, %x {id = 12 : i64, _tfrt_cost = 3 : i64} : i32, i32
  tfrt.return %r : i32
}
// CHECK-NEXT: 'cost' returned 0

// CHECK-LABEL: --- Running 'forward':
func.func @forward() -> (i32, f32, i32, f32, i32) {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 5
  %y = tfrt.constant.f32 0.5
  %0, %1 = "tfrt_test.identity"(%c0, %x, %y) : (!tfrt.chain, i32, f32) -> (i32, f32)
  %2, %3 = "tfrt_test.multi_arg_result"(%0, %1) : (i32, f32) -> (i32, f32)
  %4 = "tfrt_test.make_indirect"(%2) : (i32) -> i32
  tfrt.return %0, %1, %2, %3, %4 : i32, f32, i32, f32, i32
}
// CHECK-NEXT: 'forward' returned 5,5.000000e-01,5,5.000000e-01,5

// A value that somebody else holds is not unique; one in a register never is.
// CHECK-LABEL: --- Running 'uniqueness':
func.func @uniqueness() -> (i1, i1, i1) {
  %s = tfrt_test.get_string {value = "a"}
  %a = "tfrt_test.get_uniqueness"(%s) : (!tfrt.string) -> i1
  %t = tfrt_test.get_string {value = "b"}
  %b, %c = "tfrt_test.get_uniqueness"(%t, %t) : (!tfrt.string, !tfrt.string) -> (i1, i1)
  tfrt.return %a, %b, %c : i1, i1, i1
}
// CHECK-NEXT: 'uniqueness' returned 1,0,0

// CHECK-LABEL: --- Running 'numbers':
func.func @numbers() -> (i32, i32, i32, i64, i64, i64, i32) {
  %x = tfrt.constant.i32 2147483646
  %y = tfrt.constant.i64 -2
  %0, %1, %2 = tfrt_test.count3.i32 %x
  %3, %4, %5 = tfrt_test.count3.i64 %y
  %6 = "tfrt_test.sum"(%0, %1, %2) : (i32, i32, i32) -> i32
  tfrt.return %0, %1, %2, %3, %4, %5, %6 : i32, i32, i32, i64, i64, i64, i32
}
// CHECK-NEXT: 'numbers' returned 2147483647,-2147483648,-2147483647,-1,0,1,-2147483648

// CHECK-LABEL: --- Running 'flat':
func.func @flat() -> (!tfrt.string, i32, i32, f32) {
  %a, %b, %c, %d = "tfrt_test.flat"() {value = [["s", [10 : i32, -1 : i32]], [2.5 : f32]]}
    : () -> (!tfrt.string, i32, i32, f32)
  tfrt.return %a, %b, %c, %d : !tfrt.string, i32, i32, f32
}
// CHECK-NEXT: 'flat' returned !tfrt.string value,10,-1,2.500000e+00

// CHECK-LABEL: --- Running 'threads':
func.func @threads() -> i1 {
  %c0 = tfrt.new.chain
  %a = "tfrt_test.get_thread_id"(%c0) : (!tfrt.chain) -> i32
  %zero = tfrt.constant.i32 0
  %b = "tfrt.lessequal.i32"(%zero, %a) : (i32, i32) -> i1
  tfrt.return %b : i1
}
// CHECK-NEXT: 'threads' returned 1

// CHECK-LABEL: --- Running 'locations':
func.func @locations() -> (!tfrt.chain, !tfrt.chain) {
  %a = "tfrt_test.unique_loc"() {name = "a"} : () -> !tfrt.chain loc(unknown)
  %b = "tfrt_test.unique_loc"() {name = "b"} : () -> !tfrt.chain loc(unknown)
  tfrt.return %a, %b : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'locations' returned !tfrt.chain value,!tfrt.chain value

// CHECK-LABEL: --- Running 'async_values':
func.func @async_values() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "tfrt_test.async_value_get"() : () -> !tfrt.string
  %b = "tfrt_test.async_value_ref"() : () -> !tfrt.string
  // CHECK-NEXT: string = base1:base2:final_class:3
  %c1 = "tfrt_test.print_string"(%a, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: string = available:2;unavailable;(3);available:3;unavailable;available:4
  %c2 = "tfrt_test.print_string"(%b, %c1) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'async_values' returned !tfrt.chain value
