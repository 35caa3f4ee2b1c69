// RUN: run
// EXIT: 3

// What is said where packed weights don't fit.

// CHECK: 'no_matrix' returned <<error: expected a matrix to pack, found shape [2]>>
func.func @no_matrix() -> !cpu.matrix {
  %c0 = tfrt.new.chain
  %w = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %a0 = tfrt_dht.fill_tensor_with_constant.f32 %w, %c0 0.0 : f32
  %packed = "cpu.matmul.pack.f32"(%w, %w, %a0) : (!t.tensor, !t.tensor, !tfrt.chain) -> !cpu.matrix
  tfrt.return %packed : !cpu.matrix
}

// CHECK: 'no_bias' returned <<error: expected an element for each of 3 columns, found 2>>
func.func @no_bias() -> !cpu.matrix {
  %c0 = tfrt.new.chain
  %w = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %bias = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %packed = "cpu.matmul.pack.f32"(%w, %bias, %c0) : (!t.tensor, !t.tensor, !tfrt.chain) -> !cpu.matrix
  tfrt.return %packed : !cpu.matrix
}

// CHECK: 'no_filter' returned <<error: Conv2D expects a filter of shape [height, width, channels, filters], found [2, 3]>>
func.func @no_filter() -> !cpu.filter {
  %c0 = tfrt.new.chain
  %w = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %packed = "cpu.conv2d.pack.f32"(%w, %c0) {strides = [1 : i64, 1 : i64]} : (!t.tensor, !tfrt.chain) -> !cpu.filter
  tfrt.return %packed : !cpu.filter
}

// CHECK: 'convolutions' returned <<error: activation 'tanh' is not recognized>>
// CHECK-SAME: Conv2D expects padding to have 4 elements of 0 or more, found [-1, 0, 0, 0]
// CHECK-SAME: input channels is 1 and kernel depth is 3
// CHECK-SAME: Conv2D with strides of [2, 1] by a filter that is packed for [1, 1]
func.func @convolutions() -> (!tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 3 : i64, 1 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %packed = "cpu.conv2d.pack.f32"(%w, %c0) {strides = [1 : i64, 1 : i64]} : (!t.tensor, !tfrt.chain) -> !cpu.filter
  %a0 = "cpu.conv2d.f32"(%x, %packed, %y, %c0) {activation = "tanh", padding = [0 : i64, 0 : i64, 0 : i64, 0 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %a1 = "cpu.conv2d.f32"(%x, %packed, %y, %c0) {activation = "none", padding = [-1 : i64, 0 : i64, 0 : i64, 0 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %a2 = "cpu.conv2d.f32"(%x, %packed, %y, %c0) {activation = "none", padding = [0 : i64, 0 : i64, 0 : i64, 0 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %a3 = "cpu.conv2d.f32"(%x, %packed, %y, %c0) {activation = "none", padding = [0 : i64, 0 : i64, 0 : i64, 0 : i64], strides = [2 : i64, 1 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %a0, %a1, %a2, %a3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
}
