// RUN: run

// CHECK-LABEL: --- Running 'tasks':
func.func @tasks() -> (i1, i32, i32, i32, i32, i64, i32, i64) {
  %true = "tfrt_test.async_constant.i1"() {value = true} : () -> i1
  %x = "tfrt_test.async_constant.i32"() {value = 20 : i32} : () -> i32
  %a = "tfrt_test.async_add.i32"(%x, %x) : (i32, i32) -> i32
  %b = "tfrt_test.async_copy.i32"(%a) : (i32) -> i32
  %c = "tfrt_test.async_copy_2.i32"(%b) : (i32) -> i32
  %d = "tfrt_test.async_copy.with_delay.i32"(%c) : (i32) -> i32
  %long = tfrt.constant.i64 5000000000
  %e = "tfrt_test.async_copy.with_delay.i64"(%long) : (i64) -> i64
  %f = "tfrt_test.copy.with_delay.i32"(%d) : (i32) -> i32
  %g = "tfrt_test.copy.with_delay.i64"(%e) : (i64) -> i64
  tfrt.return %true, %a, %b, %c, %d, %e, %f, %g : i1, i32, i32, i32, i32, i64, i32, i64
}
// CHECK-NEXT: 'tasks' returned 1,40,40,40,40,5000000000,40,5000000000

// CHECK-LABEL: --- Running 'do_async':
func.func @do_async() -> (i32, !tfrt.chain) {
  %x = tfrt.constant.i32 7
  %ch = tfrt.new.chain
  %y, %done = tfrt_test.do.async %x, %ch : (i32, !tfrt.chain) -> (i32, !tfrt.chain) {
    %z = tfrt.add.i32 %x, %x
    // CHECK-NEXT: int32 = 14
    %c = tfrt.print.i32 %z, %ch
    tfrt.return %z, %c : i32, !tfrt.chain
  }
  // CHECK-NEXT: int32 = 14
  %c1 = tfrt.print.i32 %y, %done
  tfrt.return %y, %c1 : i32, !tfrt.chain
}
// CHECK-NEXT: 'do_async' returned 14,!tfrt.chain value

// CHECK-LABEL: --- Running 'as_chain':
func.func @as_chain() -> !tfrt.chain {
  %x = "tfrt_test.async_constant.i32"() {value = 1 : i32} : () -> i32
  %y = "tfrt_test.async_copy.with_delay.i32"(%x) : (i32) -> i32
  %c = "tfrt_test.as_chain"(%x, %y) : (i32, i32) -> !tfrt.chain
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'as_chain' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'blocking':
func.func @blocking() -> !tfrt.chain {
  %us = tfrt.constant.i32 1500
  %negative = tfrt.constant.i32 -3
  // CHECK-NEXT: Slept for 1500 microseconds
  %c = "tfrt_test.blocking.usleep"(%us) : (i32) -> !tfrt.chain
  // CHECK-NEXT: Slept for -3 microseconds
  %d = "tfrt_test.blocking.usleep"(%negative, %c) : (i32, !tfrt.chain) -> !tfrt.chain
  tfrt.return %d : !tfrt.chain
}
// CHECK-NEXT: 'blocking' returned !tfrt.chain value

// Nobody waits for this one, but the command waits for all work to end.
// CHECK-LABEL: --- Running 'unawaited':
func.func @unawaited() -> i32 {
  %us = tfrt.constant.i32 2000
  "tfrt_test.usleep"(%us) : (i32) -> ()
  tfrt.return %us : i32
}
// CHECK-DAG: 'unawaited' returned 2000
// CHECK-DAG: Slept for 2000 microseconds
