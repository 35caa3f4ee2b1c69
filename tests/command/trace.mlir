// RUN: run --trace-stdout --trace-level debug --queue single

// CHECK: --- Running 'main':
// CHECK-NEXT: Scope:Bef Executor
// CHECK-NEXT: Scope:Function: main
// CHECK-NEXT: Scope:tfrt.constant.i32
// CHECK-NEXT: End Scope
// CHECK-NEXT: End Scope
// CHECK-NEXT: 'main' returned 7
// CHECK-NEXT: End Scope
func.func @main() -> i32 {
  %x = tfrt.constant.i32 7
  tfrt.return %x : i32
}
