// RUN: run
// EXIT: 3

// What a cancelled request does not destroy itself is destroyed all the same.
// CHECK-LABEL: --- Running 'cancelled':
func.func @cancelled() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  // CHECK-NEXT: Allocated TestResource
  %r, %c1 = "tfrt_test.allocate_resource"(%c0) : (!tfrt.chain) -> (!tfrt.test.resource, !tfrt.chain)
  %x, %c2 = "tfrt_test.cancel"(%c1) : (!tfrt.chain) -> (i32, !tfrt.chain)
  // CHECK-NEXT: Destroyed TestResource
  %c3 = "tfrt_test.deallocate_resource"(%r, %c2) : (!tfrt.test.resource, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c3 : !tfrt.chain
}
// CHECK-NEXT: 'cancelled' returned <<error: Cancelled>>
