// RUN: run

// CHECK-LABEL: --- Running 'explicit':
func.func @explicit() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  // CHECK-NEXT: Allocated TestResource
  %r, %c1 = "tfrt_test.allocate_resource"(%c0) : (!tfrt.chain) -> (!tfrt.test.resource, !tfrt.chain)
  // CHECK-NEXT: Destroyed TestResource
  // CHECK-NEXT: tfrt_test.deallocate_resource done
  %c2 = "tfrt_test.deallocate_resource"(%r, %c1) : (!tfrt.test.resource, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'explicit' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'shared_context':
func.func @shared_context() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %s, %c1 = "tfrt_test.use_sample_shared_context"(%c0) : (!tfrt.chain) -> (!tfrt.string, !tfrt.chain)
  %t, %c2 = "tfrt_test.use_sample_shared_context"(%c1) : (!tfrt.chain) -> (!tfrt.string, !tfrt.chain)
  // CHECK-NEXT: string = sample_shared_context0
  %c3 = "tfrt_test.print_string"(%s, %c2) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: string = sample_shared_context0
  %c4 = "tfrt_test.print_string"(%t, %c3) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c4 : !tfrt.chain
}
// CHECK-NEXT: 'shared_context' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'memory':
func.func @memory() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.allocate"(%c0) {bytes = 100000} : (!tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.allocate"(%c1) {bytes = 0} : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'memory' returned !tfrt.chain value
