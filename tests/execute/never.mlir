// RUN: run --print-error-code
// EXIT: 3

// What nobody can bring any more fails, and names who was to bring it.
// CHECK-LABEL: --- Running 'never':
func.func @never() -> i32 {
  %x = "tfrt_test.never"() : () -> i32
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
// CHECK-NEXT: 'never' returned <<error: {{.*}}kernel 'tfrt_test.never' at {{.*}}never.mlir:7:8 never resolved, code: Internal>>
