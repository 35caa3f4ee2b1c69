// A small convolutional network for digits: 16 filters of 3x3, 32 of 3x3 with stride 2, 128 hidden numbers, 10
// classes; 32 images at a time.
//
// Written as if it ran from top to bottom. `tfrt opt --passes sequence-effects` puts the chains in.

// Images [32, 8, 8, 1] become logits [32, 10]; what the layers give is given, too.
func.func private @forward(%images: !t.tensor,
    %k0: !t.tensor, %b0: !t.tensor, %k1: !t.tensor, %b1: !t.tensor, %w2: !t.tensor, %b2: !t.tensor, %w3: !t.tensor, %b3: !t.tensor)
    -> (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor) {
  %one = tfrt.constant.f32 1.0
  %x0 = tfrt_dht.create_uninitialized_tensor.f32.4 [32 : i64, 8 : i64, 8 : i64, 16 : i64]
  "eigen.conv2d.bias.f32"(%images, %k0, %b0, %x0) {padding = "same", strides = [1 : i64, 1 : i64]}
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()
  "tfrt_test.relu_inplace.f32"(%x0) : (!t.tensor) -> ()
  %x1 = tfrt_dht.create_uninitialized_tensor.f32.4 [32 : i64, 4 : i64, 4 : i64, 32 : i64]
  "eigen.conv2d.bias.f32"(%x0, %k1, %b1, %x1) {padding = "same", strides = [2 : i64, 2 : i64]}
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()
  "tfrt_test.relu_inplace.f32"(%x1) : (!t.tensor) -> ()
  %flat = tfrt_dht.create_uninitialized_tensor.f32.2 [32 : i64, 512 : i64]
  "tfrt_test.flatten.f32"(%x1, %flat) : (!t.tensor, !t.tensor) -> ()
  %x2_shape = ts.build_shape [32 : i64, 128 : i64]
  %x2 = "tfrt_test.broadcast.f32.2"(%b2, %x2_shape) : (!t.tensor, !ts.shape) -> !t.tensor
  "nn.matmul.f32"(%one, %flat, %w2, %one, %x2) {transpose_a = false, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  "tfrt_test.relu_inplace.f32"(%x2) : (!t.tensor) -> ()
  %logits_shape = ts.build_shape [32 : i64, 10 : i64]
  %logits = "tfrt_test.broadcast.f32.2"(%b3, %logits_shape) : (!t.tensor, !ts.shape) -> !t.tensor
  "nn.matmul.f32"(%one, %x2, %w3, %one, %logits) {transpose_a = false, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  tfrt.return %x0, %x1, %flat, %x2, %logits : !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor
}

// Which class each image is taken for.
func.func @classify(%images: !t.tensor,
    %k0: !t.tensor, %b0: !t.tensor, %k1: !t.tensor, %b1: !t.tensor, %w2: !t.tensor, %b2: !t.tensor, %w3: !t.tensor, %b3: !t.tensor) -> !t.tensor {
  %x0, %x1, %flat, %x2, %logits = tfrt.call @forward(%images, %k0, %b0, %k1, %b1, %w2, %b2, %w3, %b3)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor)
      -> (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor)
  %classes = "tfrt_test.argmax.f32.2"(%logits) : (!t.tensor) -> !t.tensor
  tfrt.return %classes : !t.tensor
}

// Changes the weights so that the loss falls; gives the loss, and a chain for when all is done.
func.func @step(%images: !t.tensor, %targets: !t.tensor, %rate: f32,
    %k0: !t.tensor, %b0: !t.tensor, %k1: !t.tensor, %b1: !t.tensor, %w2: !t.tensor, %b2: !t.tensor, %w3: !t.tensor, %b3: !t.tensor,
    %vk0: !t.tensor, %vb0: !t.tensor, %vk1: !t.tensor, %vb1: !t.tensor, %vw2: !t.tensor, %vb2: !t.tensor, %vw3: !t.tensor, %vb3: !t.tensor)
    -> (!t.tensor, !tfrt.chain) {
  %zero = tfrt.constant.f32 0.0
  %one = tfrt.constant.f32 1.0
  %x0, %x1, %flat, %x2, %logits = tfrt.call @forward(%images, %k0, %b0, %k1, %b1, %w2, %b2, %w3, %b3)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor)
      -> (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor)
  %dlogits = tfrt_dht.create_uninitialized_tensor.f32.2 [32 : i64, 10 : i64]
  %loss = "nn.softmax_cross_entropy.f32"(%logits, %targets, %dlogits) : (!t.tensor, !t.tensor, !t.tensor) -> !t.tensor

  %dw3 = tfrt_dht.create_uninitialized_tensor.f32.2 [128 : i64, 10 : i64]
  "nn.matmul.f32"(%one, %x2, %dlogits, %zero, %dw3) {transpose_a = true, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  %db3 = tfrt_dht.create_uninitialized_tensor.f32.1 [10 : i64]
  "nn.bias_gradient.f32"(%dlogits, %db3) : (!t.tensor, !t.tensor) -> ()
  %dx2 = tfrt_dht.create_uninitialized_tensor.f32.2 [32 : i64, 128 : i64]
  "nn.matmul.f32"(%one, %dlogits, %w3, %zero, %dx2) {transpose_a = false, transpose_b = true}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  "tfrt_test.relu_grad_inplace.f32"(%x2, %dx2) : (!t.tensor, !t.tensor) -> ()
  %dw2 = tfrt_dht.create_uninitialized_tensor.f32.2 [512 : i64, 128 : i64]
  "nn.matmul.f32"(%one, %flat, %dx2, %zero, %dw2) {transpose_a = true, transpose_b = false}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  %db2 = tfrt_dht.create_uninitialized_tensor.f32.1 [128 : i64]
  "nn.bias_gradient.f32"(%dx2, %db2) : (!t.tensor, !t.tensor) -> ()
  %dflat = tfrt_dht.create_uninitialized_tensor.f32.2 [32 : i64, 512 : i64]
  "nn.matmul.f32"(%one, %dx2, %w2, %zero, %dflat) {transpose_a = false, transpose_b = true}
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor) -> ()
  %dx1 = tfrt_dht.create_uninitialized_tensor.f32.4 [32 : i64, 4 : i64, 4 : i64, 32 : i64]
  "tfrt_test.flatten.f32"(%dflat, %dx1) : (!t.tensor, !t.tensor) -> ()
  "tfrt_test.relu_grad_inplace.f32"(%x1, %dx1) : (!t.tensor, !t.tensor) -> ()
  %dk1 = tfrt_dht.create_uninitialized_tensor.f32.4 [3 : i64, 3 : i64, 16 : i64, 32 : i64]
  "eigen.conv2d.grad.filter.f32"(%dx1, %x0, %dk1) {padding = "same", strides = [2 : i64, 2 : i64]}
      : (!t.tensor, !t.tensor, !t.tensor) -> ()
  %db1 = tfrt_dht.create_uninitialized_tensor.f32.1 [32 : i64]
  "nn.bias_gradient.f32"(%dx1, %db1) : (!t.tensor, !t.tensor) -> ()
  %dx0 = tfrt_dht.create_uninitialized_tensor.f32.4 [32 : i64, 8 : i64, 8 : i64, 16 : i64]
  "eigen.conv2d.grad.input.f32"(%dx1, %k1, %dx0) {padding = "same", strides = [2 : i64, 2 : i64]}
      : (!t.tensor, !t.tensor, !t.tensor) -> ()
  "tfrt_test.relu_grad_inplace.f32"(%x0, %dx0) : (!t.tensor, !t.tensor) -> ()
  %dk0 = tfrt_dht.create_uninitialized_tensor.f32.4 [3 : i64, 3 : i64, 1 : i64, 16 : i64]
  "eigen.conv2d.grad.filter.f32"(%dx0, %images, %dk0) {padding = "same", strides = [1 : i64, 1 : i64]}
      : (!t.tensor, !t.tensor, !t.tensor) -> ()
  %db0 = tfrt_dht.create_uninitialized_tensor.f32.1 [16 : i64]
  "nn.bias_gradient.f32"(%dx0, %db0) : (!t.tensor, !t.tensor) -> ()

  %done0 = "nn.momentum.f32"(%dk0, %vk0, %k0, %rate) {decay = 0.0005 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done1 = "nn.momentum.f32"(%db0, %vb0, %b0, %rate) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done2 = "nn.momentum.f32"(%dk1, %vk1, %k1, %rate) {decay = 0.0005 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done3 = "nn.momentum.f32"(%db1, %vb1, %b1, %rate) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done4 = "nn.momentum.f32"(%dw2, %vw2, %w2, %rate) {decay = 0.0005 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done5 = "nn.momentum.f32"(%db2, %vb2, %b2, %rate) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done6 = "nn.momentum.f32"(%dw3, %vw3, %w3, %rate) {decay = 0.0005 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done7 = "nn.momentum.f32"(%db3, %vb3, %b3, %rate) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}
      : (!t.tensor, !t.tensor, !t.tensor, f32) -> !tfrt.chain
  %done = tfrt.merge.chains %done0, %done1, %done2, %done3, %done4, %done5, %done6, %done7
      : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %loss, %done : !t.tensor, !tfrt.chain
}
