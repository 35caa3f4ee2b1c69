// RUN: run
// EXIT: 3

// CHECK-LABEL: --- Running 'targets':
// CHECK: 'targets' returned {{.*}}<<error: cross entropy of logits of shape [2, 2] with targets of shape [2] and a gradient of shape [2, 2]: expected one shape, with at least one dimension>>
func.func @targets() -> (!t.tensor, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %logits = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %targets = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %gradient = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %loss, %c1 = "nn.softmax_cross_entropy.f32"(%logits, %targets, %gradient, %c0) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!t.tensor, !tfrt.chain)
  tfrt.return %loss, %c1 : !t.tensor, !tfrt.chain
}

// CHECK-LABEL: --- Running 'in_place':
// CHECK: 'in_place' returned {{.*}}<<error: the buffer is being {{.*}} by another kernel at the same time
func.func @in_place() -> (!t.tensor, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %logits = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %loss, %c1 = "nn.softmax_cross_entropy.f32"(%logits, %logits, %logits, %c0) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!t.tensor, !tfrt.chain)
  tfrt.return %loss, %c1 : !t.tensor, !tfrt.chain
}

// CHECK-LABEL: --- Running 'velocity':
// CHECK: 'velocity' returned <<error: tensor shape mismatch: [3] vs. [2]>>
func.func @velocity() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %rate = tfrt.constant.f32 0.5
  %a = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [3 : i64]
  %c1 = "nn.momentum.f32"(%a, %b, %a, %rate, %c0) {decay = 0.0 : f32, momentum = 0.5 : f32, nesterov = true} : (!t.tensor, !t.tensor, !t.tensor, f32, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'bias':
// CHECK: 'bias' returned <<error: expected a result of shape [2], found [3]>>
func.func @bias() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [4 : i64, 2 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [3 : i64]
  %c1 = "nn.bias_gradient.f32"(%a, %b, %c0) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'factors':
// CHECK: 'factors' returned <<error: MatMul input tensors inner dimension mismatch: [2, 4] vs. [2, 4]>>
func.func @factors() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.f32 1.0
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [4 : i64, 2 : i64]
  %c1 = "nn.matmul.f32"(%one, %a, %a, %one, %a, %c0) {transpose_a = true, transpose_b = true} : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
