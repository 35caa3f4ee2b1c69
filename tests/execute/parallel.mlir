// RUN: run

// Adds the bounds of its block to two counters.
func.func @block(%from: i32, %to: i32, %lower: !test.atomic.i32, %upper: !test.atomic.i32) -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.atomic.add.i32"(%lower, %from, %c0) : (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.atomic.add.i32"(%upper, %to, %c1) : (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

// Blocks [-2,2) [2,6) [6,10) [10,11).
// CHECK-LABEL: --- Running 'parallel_call':
func.func @parallel_call() -> (i32, i32) {
  %from = tfrt.constant.i32 -2
  %to = tfrt.constant.i32 11
  %size = tfrt.constant.i32 4
  %lower = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %upper = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %done = tfrt.parallel_call.i32 %from to %to fixed %size @block(%lower, %upper) : !test.atomic.i32, !test.atomic.i32
  %a, %c0 = "tfrt_test.atomic.get.i32"(%lower, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %b, %c1 = "tfrt_test.atomic.get.i32"(%upper, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'parallel_call' returned 16,29

// The loop is done when the chains of its blocks are.
// CHECK-LABEL: --- Running 'parallel_for':
func.func @parallel_for() -> i32 {
  %from = tfrt.constant.i32 0
  %to = tfrt.constant.i32 1000
  %size = tfrt.constant.i32 1
  %counter = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %done = tfrt.parallel_for.i32 %from to %to fixed %size, %counter : !test.atomic.i32 {
    %one = "tfrt_test.async_constant.i32"() {value = 1 : i32} : () -> i32
    %c0 = tfrt.new.chain
    %c1 = "tfrt_test.atomic.add.i32"(%counter, %one, %c0) : (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
    tfrt.return %c1 : !tfrt.chain
  }
  %n, %c = "tfrt_test.atomic.get.i32"(%counter, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %n : i32
}
// CHECK-NEXT: 'parallel_for' returned 1000

// CHECK-LABEL: --- Running 'without_chain':
func.func @without_chain() -> i32 {
  %from = tfrt.constant.i32 10
  %to = tfrt.constant.i32 1010
  %size = tfrt.constant.i32 7
  %counter = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
  %done = tfrt.parallel_for.i32 %from to %to fixed %size, %counter : !test.atomic.i32 {
    %length = "tfrt.minus.i32"(%to, %from) : (i32, i32) -> i32
    %c = "tfrt_test.atomic.add.i32"(%counter, %length) : (!test.atomic.i32, i32) -> !tfrt.chain
    tfrt.return
  }
  %n, %c = "tfrt_test.atomic.get.i32"(%counter, %done) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %n : i32
}
// CHECK-NEXT: 'without_chain' returned 1000

// An empty range is done at once, and an error in a block is the block's own affair.
// CHECK-LABEL: --- Running 'chain_alone':
func.func @chain_alone() -> (!tfrt.chain, !tfrt.chain) {
  %from = tfrt.constant.i32 3
  %same = tfrt.constant.i32 3
  %to = tfrt.constant.i32 4
  %size = tfrt.constant.i32 9
  %empty = tfrt.parallel_for.i32 %from to %same fixed %size {
    %c = tfrt.new.chain
    %d = "tfrt_test.print_hello"(%c) : (!tfrt.chain) -> !tfrt.chain
    tfrt.return %d : !tfrt.chain
  }
  %failed = tfrt.parallel_for.i32 %from to %to fixed %size {
    %c = tfrt.new.chain
    %d = "tfrt_test.error_chain"(%c) : (!tfrt.chain) -> !tfrt.chain
    tfrt.return %d : !tfrt.chain
  }
  tfrt.return %empty, %failed : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'chain_alone' returned !tfrt.chain value,!tfrt.chain value
