// RUN: run --print-error-code
// EXIT: 5

// CHECK-LABEL: --- Running 'sizes':
func.func @sizes() -> (!t.tensor, !t.tensor) {
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 15
  %alignment = tfrt.constant.i64 4
  %buffer = tfrt_dht.allocate_buffer %size, %alignment
  %shape = ts.build_shape [2 : i64, 2 : i64]
  %t, %c1 = tfrt_dht.make_tensor.f32 %buffer, %shape, %c0
  %s = tfrt_dht_sync.make_tensor.f32 %buffer, %shape
  tfrt.return %t, %s : !t.tensor, !t.tensor
}
// CHECK-NEXT: 'sizes' returned <<error: dht.make_tensor failed: buffer_size (15) is not equal to the number of elements in shape ([2, 2]) times element size (4), code: InvalidArgument>>,<<error: tfrt_dht_sync.make_tensor failed: buffer_size (15) is not equal to the number of elements in shape ([2, 2]) times element size (4), code: InvalidArgument>>

// CHECK-LABEL: --- Running 'alignment':
func.func @alignment() -> !t.tensor {
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 16
  %buffer = tfrt_dht.allocate_buffer %size, %size
  %two = tfrt.constant.i64 2
  %four = tfrt.constant.i64 4
  %part = tfrt_dht.get_buffer_slice %buffer, %two, %four
  %shape = ts.build_shape [1 : i64]
  %t, %c1 = tfrt_dht.make_tensor.f32 %part, %shape, %c0
  tfrt.return %t : !t.tensor
}
// CHECK-NEXT: 'alignment' returned <<error: a tensor of f32 [1] begins at a multiple of 4 bytes in memory, the buffer 2 bytes behind one, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'slices':
func.func @slices() -> (!ht.host_buffer, !ht.host_buffer) {
  %size = tfrt.constant.i64 16
  %buffer = tfrt_dht.allocate_buffer %size, %size
  %minus = tfrt.constant.i64 -1
  %ten = tfrt.constant.i64 10
  %a = tfrt_dht.get_buffer_slice %buffer, %ten, %ten
  %b = tfrt_dht.get_buffer_slice %buffer, %minus, %ten
  tfrt.return %a, %b : !ht.host_buffer, !ht.host_buffer
}
// CHECK-NEXT: 'slices' returned <<error: a slice of 10 bytes from 10 on is not in a buffer of 16 bytes, code: InvalidArgument>>,<<error: a slice of 10 bytes from -1 on is not in a buffer of 16 bytes, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'memory':
func.func @memory() -> (!ht.host_buffer, !ht.host_buffer, !ht.host_buffer) {
  %size = tfrt.constant.i64 16
  %three = tfrt.constant.i64 3
  %minus = tfrt.constant.i64 -16
  %large = tfrt.constant.i64 4611686018427387904
  %a = tfrt_dht.allocate_buffer %size, %three
  %b = tfrt_dht.allocate_buffer %minus, %size
  %c = tfrt_dht.allocate_buffer %large, %size
  tfrt.return %a, %b, %c : !ht.host_buffer, !ht.host_buffer, !ht.host_buffer
}
// CHECK-NEXT: 'memory' returned <<error: Cannot allocate host buffer of 16 bytes aligned to 3, code: InvalidArgument>>,<<error: Cannot allocate host buffer of -16 bytes aligned to 16, code: InvalidArgument>>,<<error: Cannot allocate host buffer of 4611686018427387904 bytes, code: ResourceExhausted>>

// A tensor is not sliced into itself: somebody would write what is read.
// CHECK-LABEL: --- Running 'overlapping':
func.func @overlapping() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.i32.3 [1 : i64, 1 : i64, 1 : i64]
  %begin = tfrt_dht.create_uninitialized_tensor.i64.1 [3 : i64]
  %c1 = "tfrt_test.slice_inplace.i32.3"(%t, %begin, %c0, %t) : (!t.tensor, !t.tensor, !tfrt.chain, !t.tensor) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'overlapping' returned <<error: the buffer is being used by another kernel at the same time, code: FailedPrecondition>>

// CHECK-LABEL: --- Running 'outside':
func.func @outside() -> (!tfrt.chain, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.i32.3 [2 : i64, 2 : i64, 2 : i64]
  %begin = "tfrt_test.const_dense_attr"() {value = dense<[0, 0, 1]> : tensor<3xi64>} : () -> !t.tensor
  %short = "tfrt_test.const_dense_attr"() {value = dense<[0, 1]> : tensor<2xi64>} : () -> !t.tensor
  %output = tfrt_dht.create_uninitialized_tensor.i32.3 [2 : i64, 2 : i64, 2 : i64]
  %c1 = "tfrt_test.slice_inplace.i32.3"(%t, %begin, %c0, %output) : (!t.tensor, !t.tensor, !tfrt.chain, !t.tensor) -> !tfrt.chain
  %c2 = "tfrt_test.slice_inplace.i32.3"(%t, %short, %c0, %output) : (!t.tensor, !t.tensor, !tfrt.chain, !t.tensor) -> !tfrt.chain
  tfrt.return %c1, %c2 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'outside' returned <<error: a slice of shape [2, 2, 2] from [0, 0, 1] on is not in a tensor of shape [2, 2, 2], code: InvalidArgument>>,<<error: the size of 'begin_index' should match the input tensor rank, code: InvalidArgument>>
