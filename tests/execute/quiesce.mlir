// RUN: run --queue single

// On one thread a kernel may wait for all other tasks: they run inside it.
// CHECK-LABEL: --- Running 'quiesce':
func.func @quiesce() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %us = tfrt.constant.i32 1000
  %y = tfrt_test.do.async %us, %ch : (i32, !tfrt.chain) -> (!tfrt.chain) {
    // CHECK-NEXT: int32 = 1000
    %c = tfrt.print.i32 %us, %ch
    tfrt.return %c : !tfrt.chain
  }
  %c1 = "tfrt_test.quiesce"(%ch) : (!tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: hello host executor!
  %c2 = "tfrt_test.print_hello"(%c1) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'quiesce' returned !tfrt.chain value
