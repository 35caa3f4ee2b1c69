// RUN: check
// EXIT: 1

// Whether kernels exist and fit is found when a program is loaded, all misfits at once.

// CHECK: tests/rejected/load.mlir: rejected
func.func @main() -> i32 {
  // STDERR: load.mlir:[[@LINE+1]]:{{[0-9]+}}: error: unknown kernel name 'my.kernel'
  %a = "my.kernel"() : () -> i32
  // STDERR: load.mlir:[[@LINE+3]]:{{[0-9]+}}: error: unknown kernel name 'tfrt_test.fial'
  // STDERR: help: there is a kernel 'tfrt_test.fail'
  // STDERR-NOT: error
  %b = "tfrt_test.fial"() : () -> i32
  tfrt.return %a : i32
}
