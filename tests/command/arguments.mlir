// RUN: run --arg 20 --arg 22

// Arguments are given to every function that takes so many, chains not counted.

// CHECK: --- Not running 'none_but_one' because it has arguments.
func.func @none_but_one(%x: i32) {
  tfrt.return
}

// CHECK-NEXT: --- Running 'sum':
// CHECK-NEXT: int32 = 42
// CHECK-NEXT: 'sum' returned !tfrt.chain value,42
func.func @sum(%before: !tfrt.chain, %a: i32, %b: i32) -> (!tfrt.chain, i32) {
  %sum = tfrt.add.i32 %a, %b
  %after = tfrt.print.i32 %sum, %before
  tfrt.return %after, %sum : !tfrt.chain, i32
}

// CHECK-NEXT: --- Running 'nothing':
func.func @nothing() {
  tfrt.return
}
