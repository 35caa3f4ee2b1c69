// RUN: run --print-error-code
// EXIT: 3

// CHECK-LABEL: --- Running 'negative':
func.func @negative() -> !ts.shape {
  %s = ts.build_shape [2 : i64, -3 : i64]
  tfrt.return %s : !ts.shape
}
// CHECK-NEXT: 'negative' returned <<error: the extent of dimension 1 is -3: expected 0 or more, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'no_dimension':
func.func @no_dimension() -> (i64, i64) {
  %s = ts.build_shape [2 : i64]
  %one = tfrt.constant.i32 1
  %minus = tfrt.constant.i32 -1
  %a = ts.get_dimension %s, %one
  %b = ts.get_dimension %s, %minus
  tfrt.return %a, %b : i64, i64
}
// CHECK-NEXT: 'no_dimension' returned <<error: there is no dimension 1 in shape [2], code: InvalidArgument>>,<<error: there is no dimension -1 in shape [2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'too_many':
func.func @too_many() -> i64 {
  %s = ts.build_shape [4294967296 : i64, 4294967296 : i64]
  %n = ts.get_num_elements %s
  tfrt.return %n : i64
}
// CHECK-NEXT: 'too_many' returned <<error: a tensor of shape [4294967296, 4294967296] has more elements than fit 63 bits, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'wrong_rank':
func.func @wrong_rank() -> !ts.fixed_rank_shape.3 {
  %s = ts.build_shape [1 : i64, 2 : i64]
  %f = ts.as_fixed_rank_shape.3 %s
  tfrt.return %f : !ts.fixed_rank_shape.3
}
// CHECK-NEXT: 'wrong_rank' returned <<error: shape [1, 2] has 2 dimensions, expected 3, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'unknown':
func.func @unknown() -> (!ts.shape, !ts.shape) {
  %p = ts.build_partial_shape [-1 : i64, 57 : i64, -1 : i64]
  %u = ts.build_unranked_partial_shape
  %a = ts.to_shape %p
  %b = ts.to_shape %u
  tfrt.return %a, %b : !ts.shape, !ts.shape
}
// CHECK-NEXT: 'unknown' returned <<error: Unknown dimensions at following indices = [0, 2], code: InvalidArgument>>,<<error: Unknown rank, code: InvalidArgument>>
