// RUN: run --allocator fixed:1024 --queue single
// EXIT: 3

// An error that nobody returns is the function's where it has no results, as any other.
// CHECK-LABEL: --- Running 'nothing':
func.func @nothing() {
  // STDERR: runtime error: Cannot allocate tensor of f32 [1024]
  %a = tfrt_dht.create_uninitialized_tensor.f32.1 [1024 : i64]
  tfrt.return
}
