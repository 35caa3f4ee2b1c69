// RUN: run --allocator leak-check
// EXIT: 6

// CHECK: --- Running 'leaks':
// CHECK-NEXT: HostAllocator profile:
// CHECK: Memory leak detected: {{[1-9][0-9]*}} alive allocations, {{[1-9][0-9]*}} alive bytes
func.func @leaks() {
  "tfrt_test.memory_leak_one_int32"() : () -> ()
  tfrt.return
}
