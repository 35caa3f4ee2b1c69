// RUN: run

// CHECK-LABEL: --- Running 'whole':
func.func @whole() -> (i64, i64, i1, i1) {
  %c0 = tfrt.new.chain
  %s = ts.build_shape [2 : i64, 3 : i64]
  // CHECK-NEXT: shape = [2, 3]
  %c1 = ts.print_shape %s, %c0
  %scalar = ts.build_shape []
  // CHECK-NEXT: shape = []
  %c2 = ts.print_shape %scalar, %c1
  %large = "ts.build_shape"() {value = [4294967296 : i64, 0 : i64, 1 : i64, 1 : i64, 1 : i64]} : () -> !ts.shape
  // CHECK-NEXT: shape = [4294967296, 0, 1, 1, 1]
  %c3 = ts.print_shape %large, %c2
  %one = tfrt.constant.i32 1
  %d = ts.get_dimension %s, %one
  %n = ts.get_num_elements %s
  %same = ts.equal_shape %s, %s
  %other = ts.equal_shape %s, %scalar
  tfrt.return %d, %n, %same, %other : i64, i64, i1, i1
}
// CHECK-NEXT: 'whole' returned 3,6,1,0

// CHECK-LABEL: --- Running 'of_fixed_rank':
func.func @of_fixed_rank() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %s = ts.build_shape [2 : i64, 3 : i64]
  %f = ts.as_fixed_rank_shape.2 %s
  // CHECK-NEXT: fixed_rank_shape = [2, 3]
  %c1 = ts.print_fixed_rank_shape.2 %f, %c0
  %e = ts.build_shape [2 : i64, 0 : i64, 4 : i64]
  %g = ts.as_fixed_rank_shape.3 %e
  // CHECK-NEXT: fixed_rank_shape = []
  %c2 = ts.print_fixed_rank_shape.3 %g, %c1
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'of_fixed_rank' returned

// CHECK-LABEL: --- Running 'partial':
func.func @partial() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %p = ts.build_partial_shape [2 : i64, -1 : i64]
  // CHECK-NEXT: partial_tensor_shape = [2, -1]
  %c1 = ts.print_partial_shape %p, %c0
  %u = ts.build_unranked_partial_shape
  // CHECK-NEXT: partial_tensor_shape = Unknown rank
  %c2 = ts.print_partial_shape %u, %c1
  %s = ts.build_shape [7 : i64]
  %q = ts.to_partial_shape %s
  %t = ts.to_shape %q
  // CHECK-NEXT: shape = [7]
  %c3 = ts.print_shape %t, %c2
  tfrt.return %c3 : !tfrt.chain
}
// CHECK-NEXT: 'partial' returned

// CHECK-LABEL: --- Running 'synchronous':
func.func @synchronous() -> i64 attributes {tfrt.sync} {
  %s = ts_sync.build_shape [4 : i64, 5 : i64]
  %p = ts_sync.to_partial_shape %s
  %t = ts_sync.to_shape %p
  %n = ts_sync.get_num_elements %t
  tfrt.return %n : i64
}
// CHECK-NEXT: 'synchronous' returned 20
