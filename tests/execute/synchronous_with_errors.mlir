// RUN: run
// EXIT: 3

// CHECK-LABEL: --- Running 'fail':
func.func @fail() -> i32 attributes {tfrt.sync} {
  %x = "tfrt_test.fail_s"() : () -> i32
  tfrt.return %x : i32
}
// CHECK-NEXT: 'fail' returned <<error: something bad happened>>

// CHECK-LABEL: --- Running 'error':
func.func @error() -> i32 attributes {tfrt.sync} {
  %x = "tfrt_test.error_s"() : () -> i32
  tfrt.return %x : i32
}
// CHECK-NEXT: 'error' returned <<error: something bad happened>>
