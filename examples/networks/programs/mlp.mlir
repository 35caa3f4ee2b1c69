// A perceptron for digits: 64 pixels, 256 hidden numbers, 10 classes; 32 images at a time.
//
// Written as if it ran from top to bottom. `tfrt opt --passes sequence-effects` puts the chains in.

// Images [32, 64] become logits [32, 10]; the hidden numbers are given, too.
func.func private @forward(%images: !t.tensor, %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, %b1: !t.tensor)
    -> (!t.tensor, !t.tensor) {
  %one = tfrt.constant.f32 1.0
  %hidden_shape = ts.build_shape [32 : i64, 256 : i64]
  %hidden = "tfrt_test.broadcast.f32.2"(%b0, %hidden_shape) : (!t.tensor, !ts.shape) -> !t.tensor
  "nn.matmul.f32"(%one, %images, %w0, %one, %hidden) {transpose_a = false, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  "tfrt_test.relu_inplace.f32"(%hidden) : (!t.tensor) -> ()
  %logits_shape = ts.build_shape [32 : i64, 10 : i64]
  %logits = "tfrt_test.broadcast.f32.2"(%b1, %logits_shape) : (!t.tensor, !ts.shape) -> !t.tensor
  "nn.matmul.f32"(%one, %hidden, %w1, %one, %logits) {transpose_a = false, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  tfrt.return %hidden, %logits : !t.tensor, !t.tensor
}

// Which class each image is taken for.
func.func @classify(%images: !t.tensor, %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, %b1: !t.tensor) -> !t.tensor {
  %hidden, %logits = tfrt.call @forward(%images, %w0, %b0, %w1, %b1)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor) -> (!t.tensor, !t.tensor)
  %classes = "tfrt_test.argmax.f32.2"(%logits) : (!t.tensor) -> !t.tensor
  tfrt.return %classes : !t.tensor
}

// Changes the weights so that the loss falls; gives the loss, and a chain for when all is done.
func.func @step(%images: !t.tensor, %targets: !t.tensor, %rate: f32,
    %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, %b1: !t.tensor,
    %vw0: !t.tensor, %vb0: !t.tensor, %vw1: !t.tensor, %vb1: !t.tensor) -> (!t.tensor, !tfrt.chain) {
  %zero = tfrt.constant.f32 0.0
  %one = tfrt.constant.f32 1.0
  %hidden, %logits = tfrt.call @forward(%images, %w0, %b0, %w1, %b1)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor) -> (!t.tensor, !t.tensor)
  %dlogits = tfrt_dht.create_uninitialized_tensor.f32.2 [32 : i64, 10 : i64]
  %loss = "nn.softmax_cross_entropy.f32"(%logits, %targets, %dlogits) : (!t.tensor, !t.tensor, !t.tensor) -> !t.tensor

  %dhidden = tfrt_dht.create_uninitialized_tensor.f32.2 [32 : i64, 256 : i64]
  "nn.matmul.f32"(%one, %dlogits, %w1, %zero, %dhidden) {transpose_a = false, transpose_b = true}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  "tfrt_test.relu_grad_inplace.f32"(%hidden, %dhidden) : (!t.tensor, !t.tensor) -> ()
  %dw1 = tfrt_dht.create_uninitialized_tensor.f32.2 [256 : i64, 10 : i64]
  "nn.matmul.f32"(%one, %hidden, %dlogits, %zero, %dw1) {transpose_a = true, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  %db1 = tfrt_dht.create_uninitialized_tensor.f32.1 [10 : i64]
  "nn.bias_gradient.f32"(%dlogits, %db1) : (!t.tensor, !t.tensor) -> ()
  %dw0 = tfrt_dht.create_uninitialized_tensor.f32.2 [64 : i64, 256 : i64]
  "nn.matmul.f32"(%one, %images, %dhidden, %zero, %dw0) {transpose_a = true, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  %db0 = tfrt_dht.create_uninitialized_tensor.f32.1 [256 : i64]
  "nn.bias_gradient.f32"(%dhidden, %db0) : (!t.tensor, !t.tensor) -> ()

  %done0 = "nn.momentum.f32"(%dw0, %vw0, %w0, %rate) {decay = 0.0005 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done1 = "nn.momentum.f32"(%db0, %vb0, %b0, %rate) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done2 = "nn.momentum.f32"(%dw1, %vw1, %w1, %rate) {decay = 0.0005 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done3 = "nn.momentum.f32"(%db1, %vb1, %b1, %rate) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done = tfrt.merge.chains %done0, %done1, %done2, %done3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %loss, %done : !t.tensor, !tfrt.chain
}
