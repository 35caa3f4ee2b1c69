// RUN: run --allocator fixed:1024 --queue single
// EXIT: 5

// A buffer is one block: its bytes, and 64 before them.
// CHECK-LABEL: --- Running 'buffers':
func.func @buffers() -> (!t.tensor, !t.tensor) {
  // STDERR-DAG: Allocating 192 bytes
  %a = tfrt_dht.create_uninitialized_tensor.f32.1 [32 : i64]
  // STDERR-DAG: Attempted to allocate 4160 bytes
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [1024 : i64]
  tfrt.return %a, %b : !t.tensor, !t.tensor
}
// CHECK-NEXT: 'buffers' returned {{.*}}<<error: Cannot allocate tensor of f32 [1024]>>
