// RUN: run

// Tensors of other shapes, and of parts, share the bytes of a buffer.
// CHECK-LABEL: --- Running 'shared':
func.func @shared() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 16
  %alignment = tfrt.constant.i64 128
  %buffer = tfrt_dht.allocate_buffer %size, %alignment
  %row = ts.build_shape [4 : i64]
  %square = ts.build_shape [2 : i64, 2 : i64]
  %a, %c1 = tfrt_dht.make_tensor.i32 %buffer, %row, %c0
  %b, %c2 = tfrt_dht.make_tensor.i32 %buffer, %square, %c1
  %c3 = tfrt_dht.set_tensor_with_constant_values.i32 %a, %c2 [1 : i32, 2 : i32, 3 : i32, 4 : i32]
  // CHECK-NEXT: shape = [2, 2], values = [1, 2, 3, 4]
  %c4 = tfrt_dht.print_tensor %b, %c3
  %eight = tfrt.constant.i64 8
  %half = tfrt_dht.get_buffer_slice %buffer, %eight, %eight
  %pair = ts.build_shape [2 : i64]
  %c, %c5 = tfrt_dht.make_tensor.i32 %half, %pair, %c4
  %c6 = tfrt_dht.fill_tensor_with_constant.i32 %c, %c5 7 : i32
  // CHECK-NEXT: shape = [4], values = [1, 2, 7, 7]
  %c7 = tfrt_dht.print_tensor %a, %c6
  %again, %c8 = tfrt_dht.get_buffer %c, %c7
  // CHECK-NEXT: HostBuffer<pointer=0x{{[0-9a-f]+}}, size=8>
  %c9 = tfrt_dht.print_buffer %again, %c8
  tfrt.return %c9 : !tfrt.chain
}
// CHECK-NEXT: 'shared' returned

// CHECK-LABEL: --- Running 'sliced':
func.func @sliced() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %input = "tfrt_test.const_dense_attr"() {value = dense<[[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]> : tensor<2x3x2xi32>} : () -> !t.tensor
  %begin = "tfrt_test.const_dense_attr"() {value = dense<[0, 1, 1]> : tensor<3xi64>} : () -> !t.tensor
  %output = tfrt_dht.create_uninitialized_tensor.i32.3 [2 : i64, 2 : i64, 1 : i64]
  %c1 = "tfrt_test.slice_inplace.i32.3"(%input, %begin, %c0, %output) : (!t.tensor, !t.tensor, !tfrt.chain, !t.tensor) -> !tfrt.chain
  // CHECK-NEXT: shape = [2, 2, 1], values = [4, 6, 10, 12]
  %c2 = tfrt_dht.print_tensor %output, %c1
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'sliced' returned

// CHECK-LABEL: --- Running 'synchronous':
func.func @synchronous() attributes {tfrt.sync} {
  %size = tfrt.constant.i64 8
  %buffer = tfrt_dht_sync.allocate_buffer %size, %size
  %zero = tfrt.constant.i64 0
  %part = tfrt_dht_sync.get_buffer_slice %buffer, %zero, %size
  %shape = ts_sync.build_shape [2 : i64]
  %t = tfrt_dht_sync.make_tensor.i32 %part, %shape
  // CHECK-NEXT: shape = [2], values = [0, 0]
  tfrt_dht_sync.print_tensor %t
  tfrt.return
}
