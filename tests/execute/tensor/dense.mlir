// RUN: run

// CHECK-LABEL: --- Running 'filled':
func.func @filled() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %t, %c0 0.5 : f32
  // CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2, 2], values = [5.000000e-01, 5.000000e-01, 5.000000e-01, 5.000000e-01]
  %c2 = tfrt_dht.print_tensor %t, %c1
  %c3 = tfrt_dht.set_tensor_with_constant_values.f32 %t, %c2 [1.0 : f32, -2.0 : f32, 0x7F800000 : f32, 1.0e-10 : f32]
  // CHECK-NEXT: values = [1.000000e+00, -2.000000e+00, INF, 1.000000e-10]
  %c4 = tfrt_dht.print_tensor %t, %c3
  // CHECK-NEXT: [2, 2]
  %c5 = "tfrt_dht.print_tensor_shape"(%t, %c4) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  %c6 = "tfrt_dht.no_op_ht"(%t, %c5) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c6 : !tfrt.chain
}
// CHECK-NEXT: 'filled' returned

// CHECK-LABEL: --- Running 'of_every_type':
func.func @of_every_type() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %u8 = tfrt_dht.create_uninitialized_tensor.ui8.1 [2 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.ui8 %u8, %c0 [1 : ui8, 255 : ui8]
  // CHECK-NEXT: dtype = u8, shape = [2], values = [1, 255]
  %a1 = tfrt_dht.print_tensor %u8, %a0
  %i8 = "tfrt_dht.create_uninitialized_tensor.i8.1"() {shape = [2 : i64]} : () -> !t.tensor
  %b0 = "tfrt_dht.set_tensor_with_constant_values.i8"(%i8, %a1) {values = [1 : i8, -1 : i8]} : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: dtype = i8, shape = [2], values = [1, -1]
  %b1 = tfrt_dht.print_tensor %i8, %b0
  %u16 = tfrt_dht.create_uninitialized_tensor.ui16.0 []
  %d0 = tfrt_dht.fill_tensor_with_constant.ui16 %u16, %b1 65535 : ui16
  // CHECK-NEXT: dtype = u16, shape = [], values = [65535]
  %d1 = tfrt_dht.print_tensor %u16, %d0
  %u64 = tfrt_dht.create_uninitialized_tensor.ui64.1 [1 : i64]
  %e0 = tfrt_dht.fill_tensor_with_constant.ui64 %u64, %d1 18446744073709551615 : ui64
  // CHECK-NEXT: dtype = u64, shape = [1], values = [18446744073709551615]
  %e1 = tfrt_dht.print_tensor %u64, %e0
  %bool = tfrt_dht.create_uninitialized_tensor.bool.1 [3 : i64]
  %f0 = tfrt_dht.set_tensor_with_constant_values.bool %bool, %e1 [true, false, true]
  // CHECK-NEXT: dtype = i1, shape = [3], values = [1, 0, 1]
  %f1 = tfrt_dht.print_tensor %bool, %f0
  %f2 = tfrt_dht.fill_tensor_with_constant.bool %bool, %f1 true
  // CHECK-NEXT: values = [1, 1, 1]
  %f3 = tfrt_dht.print_tensor %bool, %f2
  %complex = tfrt_dht.create_uninitialized_tensor.complex64.1 [2 : i64]
  %g0 = tfrt_dht.set_tensor_with_constant_values.complex64 %complex, %f3 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32]
  // CHECK-NEXT: dtype = complex64, shape = [2], values = [(1.000000e+00,2.000000e+00), (3.000000e+00,4.000000e+00)]
  %g1 = tfrt_dht.print_tensor %complex, %g0
  %g2 = tfrt_dht.fill_tensor_with_constant.complex64 %complex, %g1 [0.0 : f32, -1.0 : f32]
  // CHECK-NEXT: values = [(0.000000e+00,-1.000000e+00), (0.000000e+00,-1.000000e+00)]
  %g3 = tfrt_dht.print_tensor %complex, %g2
  %half = "tfrt_dht.create_uninitialized_tensor.f16.1"() {shape = [2 : i64]} : () -> !t.tensor
  %h0 = "tfrt_dht.set_tensor_with_constant_values.f16"(%half, %g3) {values = [1.0 : f16, 0.0 : f16]} : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: dtype = f16, shape = [2], values = [fp16(15360), fp16(0)]
  %h1 = tfrt_dht.print_tensor %half, %h0
  %i0 = "tfrt_dht.fill_tensor_with_constant.f16"(%half, %h1) {value = 2.0 : f16} : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [fp16(16384), fp16(16384)]
  %i1 = tfrt_dht.print_tensor %half, %i0
  tfrt.return %i1 : !tfrt.chain
}
// CHECK-NEXT: 'of_every_type' returned

// CHECK-LABEL: --- Running 'from_operands':
func.func @from_operands() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i64 4
  %y = tfrt.constant.i64 -5
  %t = tfrt_dht.create_uninitialized_tensor.i64.1 [2 : i64]
  %c1 = "tfrt_dht.set_tensor_with_values.i64"(%t, %c0, %x, %y) : (!t.tensor, !tfrt.chain, i64, i64) -> !tfrt.chain
  // CHECK-NEXT: values = [4, -5]
  %c2 = tfrt_dht.print_tensor %t, %c1
  %yes = tfrt.constant.i1 true
  %b = tfrt_dht.create_uninitialized_tensor.bool.0 []
  %c3 = "tfrt_dht.set_tensor_with_values.bool"(%b, %c2, %yes) : (!t.tensor, !tfrt.chain, i1) -> !tfrt.chain
  // CHECK-NEXT: values = [1]
  %c4 = tfrt_dht.print_tensor %b, %c3
  tfrt.return %c4 : !tfrt.chain
}
// CHECK-NEXT: 'from_operands' returned

// More than 16 elements are not shown; no element is nothing between brackets.
// CHECK-LABEL: --- Running 'of_every_size':
func.func @of_every_size() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %many = tfrt_dht.create_uninitialized_tensor.i32.1 [17 : i64]
  // CHECK-NEXT: shape = [17], values = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ... ]
  %c1 = tfrt_dht.print_tensor %many, %c0
  %none = "tfrt_dht.create_uninitialized_tensor.i32.5"() {shape = [1, 2, 0, 3, 4]} : () -> !t.tensor
  // CHECK-NEXT: shape = [1, 2, 0, 3, 4], values = []
  %c2 = tfrt_dht.print_tensor %none, %c1
  %c3 = tfrt_dht.set_tensor_with_constant_values.i32 %none, %c2 []
  %s = tfrt_dht.get_tensor_shape %none
  // CHECK-NEXT: shape = [1, 2, 0, 3, 4]
  %c4 = ts.print_shape %s, %c3
  tfrt.return %c4 : !tfrt.chain
}
// CHECK-NEXT: 'of_every_size' returned

// CHECK-LABEL: --- Running 'compared':
func.func @compared() -> (i1, i1, i1, i1, i1) {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %c = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 1 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %a, %c0 1.0 : f32
  %c2 = tfrt_dht.fill_tensor_with_constant.f32 %b, %c1 1.0001 : f32
  %same, %c3 = tfrt_dht.tensor_equal.f32 %a, %a, %c2
  %different, %c4 = tfrt_dht.tensor_equal.f32 %a, %b, %c3
  %shape, %c5 = tfrt_dht.tensor_equal.f32 %a, %c, %c4
  %far, %c6 = "tfrt_dht.tensor_allclose.3ulp.f32"(%a, %b, %c5) : (!t.tensor, !t.tensor, !tfrt.chain) -> (i1, !tfrt.chain)
  %near, %c7 = "tfrt_dht.tensor_allclose.2000ulp.f32"(%a, %b, %c6) : (!t.tensor, !t.tensor, !tfrt.chain) -> (i1, !tfrt.chain)
  tfrt.return %same, %different, %shape, %far, %near : i1, i1, i1, i1, i1
}
// CHECK-NEXT: 'compared' returned 1,0,0,0,1

// CHECK-LABEL: --- Running 'synchronous':
func.func @synchronous() attributes {tfrt.sync} {
  %t = tfrt_dht_sync.create_uninitialized_tensor.i32.1 [2 : i64]
  tfrt_dht_sync.set_tensor_with_constant_values.i32 %t [3 : i32, 4 : i32]
  // CHECK-NEXT: values = [3, 4]
  tfrt_dht_sync.print_tensor %t
  %ones = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [1 : i32]} : () -> !t.tensor
  // CHECK-NEXT: values = [1, 1]
  tfrt_dht_sync.print_tensor %ones
  %both = "tfrt_dht_sync.create_dense_tensor.bool"() {shape = [2], values = [true, false]} : () -> !t.tensor
  // CHECK-NEXT: values = [1, 0]
  tfrt_dht_sync.print_tensor %both
  %scalar = "tfrt_dht_sync.create_from_scalar.f32"() {shape = [5, 3], value = 7.0 : f32} : () -> !t.tensor
  // CHECK-NEXT: ScalarHostTensor dtype = f32, shape = [5, 3], value = 7.000000e+00
  tfrt_dht_sync.print_tensor %scalar
  %complex = "tfrt_dht_sync.create_from_scalar.complex64"() {shape = [1], value = [1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  // CHECK-NEXT: ScalarHostTensor dtype = complex64, shape = [1], value = (1.000000e+00,2.000000e+00)
  tfrt_dht_sync.print_tensor %complex
  tfrt.return
}

// CHECK-LABEL: --- Running 'of_attributes':
func.func @of_attributes() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %t = "tfrt_test.const_dense_attr"() {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>} : () -> !t.tensor
  // CHECK-NEXT: dtype = i32, shape = [2, 2], values = [1, 2, 3, 4]
  %c1 = tfrt_dht.print_tensor %t, %c0
  %s = "tfrt_test.sync.const_dense_attr"() {value = dense<true> : tensor<3xi1>} : () -> !t.tensor
  // CHECK-NEXT: dtype = i1, shape = [3], values = [1, 1, 1]
  %c2 = tfrt_dht.print_tensor %s, %c1
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'of_attributes' returned

// The shape counts, whatever number the name has.
// CHECK-LABEL: --- Running 'of_another_rank':
func.func @of_another_rank() -> !t.tensor {
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [3 : i64, 2 : i64]
  tfrt.return %t : !t.tensor
}
// CHECK-NEXT: 'of_another_rank' returned
