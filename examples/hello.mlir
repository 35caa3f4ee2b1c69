// RUN: run

// The smallest program that does something. Effects have no order of their own: what must happen
// after something else takes that one's chain.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> !tfrt.chain {
  %start = tfrt.new.chain
  // CHECK-NEXT: hello host executor!
  %hello = "tfrt_test.print_hello"(%start) : (!tfrt.chain) -> !tfrt.chain

  %number = tfrt.constant.i32 42
  // CHECK-NEXT: int32 = 42
  %done = tfrt.print.i32 %number, %hello

  tfrt.return %done : !tfrt.chain
}
// CHECK-NEXT: 'main' returned !tfrt.chain value
