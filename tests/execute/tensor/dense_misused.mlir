// RUN: run --print-error-code
// EXIT: 5

// CHECK-LABEL: --- Running 'dtype':
func.func @dtype() -> (!tfrt.chain, i1) {
  %c0 = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %t, %c0 1.0 : f32
  %same, %c2 = tfrt_dht.tensor_equal.f32 %t, %t, %c0
  tfrt.return %c1, %same : !tfrt.chain, i1
}
// CHECK-NEXT: 'dtype' returned <<error: expected a tensor of f32, found one of i32 [2], code: InvalidArgument>>,<<error: expected a tensor of f32, found one of i32 [2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'format':
func.func @format() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %t = "tfrt_dht_sync.create_from_scalar.f32"() {shape = [2], value = 1.0 : f32} : () -> !t.tensor
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %t, %c0 1.0 : f32
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'format' returned <<error: expected a DenseHost tensor, found a ScalarHost tensor of f32 [2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'counts':
func.func @counts() -> (!tfrt.chain, !tfrt.chain, !tfrt.chain, !t.tensor) {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 1
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.i32 %t, %c0 [1 : i32, 2 : i32, 3 : i32]
  %c2 = "tfrt_dht.set_tensor_with_values.i32"(%t, %c0, %x) : (!t.tensor, !tfrt.chain, i32) -> !tfrt.chain
  %c = tfrt_dht.create_uninitialized_tensor.complex64.1 [2 : i64]
  %c3 = tfrt_dht.set_tensor_with_constant_values.complex64 %c, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32]
  %d = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  tfrt.return %c1, %c2, %c3, %d : !tfrt.chain, !tfrt.chain, !tfrt.chain, !t.tensor
}
// CHECK-NEXT: 'counts' returned <<error: Incorrect number of values for the tensor: 3, but expected 2, code: InvalidArgument>>,<<error: Incorrect number of values for the tensor: 1, but expected 2, code: InvalidArgument>>,<<error: Incorrect number of real and imaginary values for the complex tensor: 3, but expected 4, code: InvalidArgument>>,<<error: Incorrect number of values for the tensor: 2, but expected 3, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'operand_types':
func.func @operand_types() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 1
  %t = tfrt_dht.create_uninitialized_tensor.i64.1 [1 : i64]
  %c1 = "tfrt_dht.set_tensor_with_values.i64"(%t, %c0, %x) : (!t.tensor, !tfrt.chain, i32) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'operand_types' returned <<error: variadic operand 0: expected i64, found i32, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'too_large':
func.func @too_large() -> (!t.tensor, !t.tensor) {
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [4611686018427387904 : i64, 4 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [1152921504606846976 : i64]
  tfrt.return %a, %b : !t.tensor, !t.tensor
}
// CHECK-NEXT: 'too_large' returned <<error: a tensor of f32 [4611686018427387904, 4] does not fit any memory, code: ResourceExhausted>>,<<error: Cannot allocate tensor of f32 [1152921504606846976], code: ResourceExhausted>>

// CHECK-LABEL: --- Running 'parts':
func.func @parts() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c = tfrt_dht.create_uninitialized_tensor.complex64.1 [2 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.complex64 %c, %c0 [1.0 : f32]
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'parts' returned <<error: a complex value is two numbers, found 1, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'no_elements':
func.func @no_elements() -> !t.tensor {
  %t = "tfrt_test.const_dense_attr"() {value = 1 : i32} : () -> !t.tensor
  tfrt.return %t : !t.tensor
}
// CHECK-NEXT: 'no_elements' returned <<error: error creating DenseHostTensor: attribute 'value' is no dense elements, code: InvalidArgument>>
