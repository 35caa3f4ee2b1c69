// RUN: run

// Weights that are packed ahead.

// CHECK-LABEL: --- Running 'image':
func.func @image() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 3 : i64, 3 : i64, 1 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.4 [2 : i64, 2 : i64, 1 : i64, 2 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 2 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %x, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32, 5.0 : f32, 6.0 : f32, 7.0 : f32, 8.0 : f32, 9.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %w, %a0 [1.0 : f32, 1.0 : f32, 1.0 : f32, 0.0 : f32, 1.0 : f32, 0.0 : f32, 1.0 : f32, -2.0 : f32]
  %packed = "cpu.conv2d.pack.f32"(%w, %a1) {strides = [1 : i64, 1 : i64]} : (!t.tensor, !tfrt.chain) -> !cpu.filter
  // Each sum of four, and what is above to the left less twice what is below to the right.
  %a3 = "cpu.conv2d.f32"(%x, %packed, %y, %a1) {activation = "none", padding = [0 : i64, 0 : i64, 0 : i64, 0 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [1.200000e+01, -9.000000e+00, 1.600000e+01, -1.000000e+01, 2.400000e+01, -1.200000e+01, 2.800000e+01, -1.300000e+01]
  %a4 = tfrt_dht.print_tensor %y, %a3
  // Padded above and to the left, two apart, added to what stands there.
  %strided = "cpu.conv2d.pack.f32"(%w, %a4) {strides = [2 : i64, 2 : i64]} : (!t.tensor, !tfrt.chain) -> !cpu.filter
  %a5 = "cpu.conv2d.add.f32"(%x, %strided, %y, %a4) {activation = "relu", padding = [1 : i64, 0 : i64, 1 : i64, 0 : i64], strides = [2 : i64, 2 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [1.300000e+01, 0.000000e+00, 2.100000e+01, 0.000000e+00, 3.500000e+01, 0.000000e+00, 5.600000e+01, 0.000000e+00]
  %a6 = tfrt_dht.print_tensor %y, %a5
  tfrt.return %a6 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'normalised':
func.func @normalised() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 2 : i64, 1 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 1 : i64, 1 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 2 : i64, 1 : i64]
  %two = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %four = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %x, %c0 [5.0 : f32, -7.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %w, %a0 [2.0 : f32]
  %a2 = tfrt_dht.set_tensor_with_constant_values.f32 %two, %a1 [2.0 : f32]
  %a3 = tfrt_dht.set_tensor_with_constant_values.f32 %four, %a2 [4.0 : f32]
  // (2 x - 4) / sqrt(4) * 2 + 2, from 0 to 6.
  %packed = "cpu.conv2d.pack.batch_norm.f32"(%w, %two, %two, %four, %four, %a3) {epsilon = 0.0 : f32, strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !cpu.filter
  %a4 = "cpu.conv2d.f32"(%x, %packed, %y, %a3) {activation = "relu6", padding = [0 : i64, 0 : i64, 0 : i64, 0 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [6.000000e+00, 0.000000e+00]
  %a5 = tfrt_dht.print_tensor %y, %a4
  tfrt.return %a5 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'rows':
func.func @rows() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %bias = tfrt_dht.create_uninitialized_tensor.f32.1 [3 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %x, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %w, %a0 [1.0 : f32, 0.0 : f32, -1.0 : f32, 0.0 : f32, 1.0 : f32, -1.0 : f32]
  %a2 = tfrt_dht.set_tensor_with_constant_values.f32 %bias, %a1 [10.0 : f32, 20.0 : f32, 5.0 : f32]
  %packed = "cpu.matmul.pack.f32"(%w, %bias, %a2) : (!t.tensor, !t.tensor, !tfrt.chain) -> !cpu.matrix
  %a3 = "cpu.matmul.f32"(%x, %packed, %y, %a2) {activation = "relu"} : (!t.tensor, !cpu.matrix, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [1.100000e+01, 2.200000e+01, 2.000000e+00, 1.300000e+01, 2.400000e+01, 0.000000e+00]
  %a4 = tfrt_dht.print_tensor %y, %a3
  tfrt.return %a4 : !tfrt.chain
}
