// RUN: run --allocator profiled

// CHECK: 'main' returned 7
// CHECK-NEXT: HostAllocator profile:
// CHECK-NEXT: Current number of allocations = 0
// CHECK-NEXT: Max number of allocations = {{[0-9]+}}
// CHECK-NEXT: Total number of allocations = {{[1-9][0-9]*}}
// CHECK-NEXT: Current number of bytes allocated = 0
// CHECK-NEXT: Max number of bytes allocated = {{[1-9][0-9]*}}
func.func @main() -> i32 {
  // A call this small takes no memory from the allocator: a kernel does.
  %start = tfrt.new.chain
  %done = "tfrt_test.allocate"(%start) {bytes = 4096 : i64} : (!tfrt.chain) -> !tfrt.chain
  %x = tfrt.constant.i32 7
  tfrt.return %x : i32
}
