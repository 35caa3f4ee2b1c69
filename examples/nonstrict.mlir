// RUN: run --queue single

// A kernel runs when all of its operands are there, unless its operation is marked
// `bef.nonstrict`: then it runs as soon as any one of them is. Here that makes a chain of whichever
// comes first.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> (!tfrt.chain, i32) {
  %start = tfrt.new.chain
  %slow = "tfrt_test.async_constant.i32"() {value = 7 : i32} : () -> i32

  // %start is there at once, so this does not wait for %slow...
  %either = "tfrt_test.as_chain"(%start, %slow) {bef.nonstrict}
    : (!tfrt.chain, i32) -> !tfrt.chain

  // ... and this line comes first.
  %one = tfrt.constant.i32 1
  // CHECK-NEXT: int32 = 1
  %first = tfrt.print.i32 %one, %either
  // CHECK-NEXT: int32 = 7
  %second = tfrt.print.i32 %slow, %first
  tfrt.return %second, %slow : !tfrt.chain, i32
}
// CHECK: 'main' returned !tfrt.chain value,7
