// RUN: run

// Coordinates are those of a tensor of three rows and two columns.
// CHECK-LABEL: --- Running 'coordinates':
func.func @coordinates() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "tfrt_test.const_dense_attr"() {value = dense<[[1, 2], [0, 4], [5, 0]]> : tensor<3x2xi32>} : () -> !t.tensor
  %s, %c1 = coo.convert_dht_to_coo.i32.2 %a, %c0
  // CHECK-NEXT: CooHostTensor dtype = i32, shape = [3, 2], indices = [0, 0, 0, 1, 1, 1, 2, 0], values = [1, 2, 4, 5]
  %c2 = tfrt_dht.print_tensor %s, %c1
  // CHECK: CooHostTensor dtype = i32, shape = [3, 2], indices = [0, 0, 0, 1, 1, 1, 2, 0], values = [1, 2, 4, 5]
  %c3 = coo.print_tensor %s, %c2
  %d, %c4 = coo.convert_coo_to_dht.i32.2 %s, %c3
  // CHECK: DenseHostTensor dtype = i32, shape = [3, 2], values = [1, 2, 0, 4, 5, 0]
  %c5 = tfrt_dht.print_tensor %d, %c4
  tfrt.return %c5 : !tfrt.chain
}
// CHECK-NEXT: 'coordinates' returned

// CHECK-LABEL: --- Running 'compared':
func.func @compared() -> (i1, i1) {
  %c0 = tfrt.new.chain
  %a = "tfrt_test.const_dense_attr"() {value = dense<[0.0, 1.0]> : tensor<2xf32>} : () -> !t.tensor
  %b = "tfrt_test.const_dense_attr"() {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> !t.tensor
  %s, %c1 = coo.convert_dht_to_coo.f32.1 %a, %c0
  %t, %c2 = coo.convert_dht_to_coo.f32.1 %b, %c1
  %same, %c3 = coo.tensor_equal.f32.1 %s, %s, %c2
  %other, %c4 = coo.tensor_equal.f32.1 %s, %t, %c3
  tfrt.return %same, %other : i1, i1
}
// CHECK-NEXT: 'compared' returned 1,0

// CHECK-LABEL: --- Running 'scalar':
func.func @scalar() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.i32.0 []
  %c1 = tfrt_dht.fill_tensor_with_constant.i32 %a, %c0 3 : i32
  %s, %c2 = coo.convert_dht_to_coo.i32.0 %a, %c1
  // CHECK-NEXT: CooHostTensor dtype = i32, shape = [], indices = [], values = [3]
  %c3 = tfrt_dht.print_tensor %s, %c2
  tfrt.return %c3 : !tfrt.chain
}
