// RUN: run

// What training needs beside the kernels of networks.

// CHECK-LABEL: --- Running 'products':
func.func @products() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %zero = tfrt.constant.f32 0.0
  %one = tfrt.constant.f32 1.0
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [3 : i64, 2 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 3 : i64]
  %c = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 1 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %a, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32, 5.0 : f32, 6.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %b, %a0 [1.0 : f32, 0.0 : f32, -1.0 : f32]
  %a2 = "nn.matmul.f32"(%one, %a, %b, %zero, %c, %a1) {transpose_a = true, transpose_b = true} : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: shape = [2, 1], values = [-4.000000e+00, -4.000000e+00]
  %a3 = tfrt_dht.print_tensor %c, %a2
  %sum = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %a4 = "nn.bias_gradient.f32"(%a, %sum, %a3) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: shape = [2], values = [9.000000e+00, 1.200000e+01]
  %a5 = tfrt_dht.print_tensor %sum, %a4
  tfrt.return %a5 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'loss':
func.func @loss() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %logits = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %targets = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %gradient = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %logits, %c0 [1.0 : f32, 1.0 : f32, 100.0 : f32, 0.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %targets, %a0 [1.0 : f32, 0.0 : f32, 1.0 : f32, 0.0 : f32]
  %loss, %a2 = "nn.softmax_cross_entropy.f32"(%logits, %targets, %gradient, %a1) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!t.tensor, !tfrt.chain)
  // CHECK-NEXT: shape = [], values = [3.465736e-01]
  %a3 = tfrt_dht.print_tensor %loss, %a2
  // CHECK-NEXT: shape = [2, 2], values = [-2.500000e-01, 2.500000e-01, 0.000000e+00, {{0.000000e\+00|1.860038e-44}}]
  %a4 = tfrt_dht.print_tensor %gradient, %a3
  tfrt.return %a4 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'steps':
func.func @steps() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %rate = tfrt.constant.f32 0.5
  %gradient = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %velocity = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %weights = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %gradient, %c0 [1.0 : f32, -2.0 : f32]
  %a1 = tfrt_dht.fill_tensor_with_constant.f32 %velocity, %a0 1.0 : f32
  %a2 = tfrt_dht.fill_tensor_with_constant.f32 %weights, %a1 4.0 : f32
  %a3 = "nn.momentum.f32"(%gradient, %velocity, %weights, %rate, %a2) {decay = 0.25 : f32, momentum = 0.5 : f32, nesterov = false} : (!t.tensor, !t.tensor, !t.tensor, f32, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [2.500000e+00, -5.000000e-01]
  %a4 = tfrt_dht.print_tensor %velocity, %a3
  // CHECK-NEXT: values = [2.750000e+00, 4.250000e+00]
  %a5 = tfrt_dht.print_tensor %weights, %a4
  %a6 = "nn.momentum.f32"(%gradient, %velocity, %weights, %rate, %a5) {decay = 0.0 : f32, momentum = 0.5 : f32, nesterov = true} : (!t.tensor, !t.tensor, !t.tensor, f32, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [2.250000e+00, -2.250000e+00]
  %a7 = tfrt_dht.print_tensor %velocity, %a6
  // CHECK-NEXT: values = [1.687500e+00, 5.812500e+00]
  %a8 = tfrt_dht.print_tensor %weights, %a7
  tfrt.return %a8 : !tfrt.chain
}
