// RUN: run

// CHECK-LABEL: --- Running 'atomics':
func.func @atomics() -> (i32, i32) {
  %a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %x = tfrt.constant.i32 40
  %c0 = tfrt.new.chain
  %0, %c1 = "tfrt_test.atomic.get.i32"(%a, %c0) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %c2 = "tfrt_test.atomic.add.i32"(%a, %x, %c1) : (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
  %c3 = "tfrt_test.atomic.inc.i32"(%a, %c2) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
  %c4 = "tfrt_test.atomic.inc.i32"(%a, %c3) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
  %1, %c5 = "tfrt_test.atomic.get.i32"(%a, %c4) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %0, %1 : i32, i32
}
// CHECK-NEXT: 'atomics' returned 0,42

// CHECK-LABEL: --- Running 'without_chains':
func.func @without_chains() -> i32 {
  %a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %c = "tfrt_test.atomic.inc.i32"(%a) : (!test.atomic.i32) -> !tfrt.chain
  %1, %d = "tfrt_test.atomic.get.i32"(%a, %c) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %1 : i32
}
// CHECK-NEXT: 'without_chains' returned 1
