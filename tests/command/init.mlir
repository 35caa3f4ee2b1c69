// RUN: run --init setup --function second --function first

// The function named by `--init` comes first, once, then the others in the order of the command
// line.

func.func @first() -> i32 {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32
}
func.func @second() -> i32 {
  %x = tfrt.constant.i32 2
  tfrt.return %x : i32
}
func.func @setup() -> i32 {
  %x = tfrt.constant.i32 0
  tfrt.return %x : i32
}

// CHECK: --- Running 'setup':
// CHECK-NEXT: 'setup' returned 0
// CHECK-NEXT: --- Running 'second':
// CHECK-NEXT: 'second' returned 2
// CHECK-NEXT: --- Running 'first':
// CHECK-NEXT: 'first' returned 1
// CHECK-NOT: {{.}}
