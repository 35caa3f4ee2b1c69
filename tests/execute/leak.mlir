// RUN: run --allocator leak-check
// EXIT: 6

// CHECK: --- Running 'leak':
func.func @leak() {
  "tfrt_test.memory_leak_one_int32"() : () -> ()
  tfrt.return
}
// CHECK: Memory leak detected: 1 alive allocations, 4 alive bytes
