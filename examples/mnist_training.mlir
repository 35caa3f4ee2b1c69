// RUN: run

// A perceptron learns one more image, in the form of the original's training program for MNIST: steps of
// gradient descent, each on weights that the last one has left.
//
// The image is one that the network of `mnist_inference.mlir` takes for another digit; it stands in the same file.

func.func @main() -> !tfrt.chain {
  %path = tfrt_test.get_string {value = "examples/mnist.btf"}
  %i0 = tfrt.constant.i32 0
  %i1 = tfrt.constant.i32 1
  %i2 = tfrt.constant.i32 2
  %i3 = tfrt.constant.i32 3
  %i6 = tfrt.constant.i32 6
  %i7 = tfrt.constant.i32 7
  %w0 = "btf.read_dense_tensor.f32.2"(%path, %i0) : (!tfrt.string, i32) -> !t.tensor
  %b0 = "btf.read_dense_tensor.f32.1"(%path, %i1) : (!tfrt.string, i32) -> !t.tensor
  %w1 = "btf.read_dense_tensor.f32.2"(%path, %i2) : (!tfrt.string, i32) -> !t.tensor
  %b1 = "btf.read_dense_tensor.f32.1"(%path, %i3) : (!tfrt.string, i32) -> !t.tensor
  %image = "btf.read_dense_tensor.f32.2"(%path, %i6) : (!tfrt.string, i32) -> !t.tensor
  %target = "btf.read_dense_tensor.f32.2"(%path, %i7) : (!tfrt.string, i32) -> !t.tensor

  // Which digit it is, and which it is taken for.
  %c0 = tfrt.new.chain
  %digit = "tfrt_test.argmax.f32.2"(%target, %c0) : (!t.tensor, !tfrt.chain) -> !t.tensor
  // CHECK: shape = [1], values = [3]
  %c1 = tfrt_dht.print_tensor %digit, %c0
  %hidden, %found, %c2 = tfrt.call @forward(%image, %w0, %b0, %w1, %b1, %c1)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!t.tensor, !t.tensor, !tfrt.chain)
  %taken_for = "tfrt_test.argmax.f32.2"(%found, %c2) : (!t.tensor, !tfrt.chain) -> !t.tensor
  // CHECK-NEXT: shape = [1], values = [7]
  %c30 = tfrt_dht.print_tensor %taken_for, %c2
  // CHECK-NEXT: shape = [1, 10]
  %c3 = tfrt_dht.print_tensor %found, %c30

  // Eleven steps, each waiting for the one before.
  %n = tfrt.constant.i32 11
  %c4, %image4, %target4, %w04, %b04, %w14, %b14 = tfrt.repeat.i32 %n, %c3, %image, %target, %w0, %b0, %w1, %b1
      : !tfrt.chain, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor {
    %done = tfrt.call @step(%image, %target, %w0, %b0, %w1, %b1, %c3)
        : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
    tfrt.return %done, %image, %target, %w0, %b0, %w1, %b1
        : !tfrt.chain, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor
  }

  // Now it is taken for what it is.
  %hidden4, %found4, %c5 = tfrt.call @forward(%image, %w0, %b0, %w1, %b1, %c4)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!t.tensor, !t.tensor, !tfrt.chain)
  %learnt = "tfrt_test.argmax.f32.2"(%found4, %c5) : (!t.tensor, !tfrt.chain) -> !t.tensor
  // CHECK-NEXT: shape = [1], values = [3]
  %c6 = tfrt_dht.print_tensor %learnt, %c5
  // CHECK-NEXT: shape = [1, 10]
  %c7 = tfrt_dht.print_tensor %found4, %c6
  tfrt.return %c7 : !tfrt.chain
}

// An image [1, 64] becomes hidden numbers [1, 256] and probabilities [1, 10].
func.func private @forward(%image: !t.tensor, %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, %b1: !t.tensor,
    %c0: !tfrt.chain) -> (!t.tensor, !t.tensor, !tfrt.chain) {
  %one = tfrt.constant.f32 1.0
  %hidden_shape = ts.build_shape [1 : i64, 256 : i64]
  %hidden = "tfrt_test.broadcast.f32.2"(%b0, %hidden_shape, %c0) : (!t.tensor, !ts.shape, !tfrt.chain) -> !t.tensor
  %c1 = "eigen.matmul.f32"(%one, %image, %w0, %one, %hidden, %c0)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.relu_inplace.f32"(%hidden, %c1) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  %found_shape = ts.build_shape [1 : i64, 10 : i64]
  %found = "tfrt_test.broadcast.f32.2"(%b1, %found_shape, %c0) : (!t.tensor, !ts.shape, !tfrt.chain) -> !t.tensor
  %c3 = "eigen.matmul.f32"(%one, %hidden, %w1, %one, %found, %c2)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // Over all elements, which are one row.
  %c4 = "tfrt_test.softmax_inplace.f32"(%found, %c3) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %hidden, %found, %c4 : !t.tensor, !t.tensor, !tfrt.chain
}

// Changes the weights so that the image is taken for its digit a little more.
func.func private @step(%image: !t.tensor, %target: !t.tensor,
    %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, %b1: !t.tensor, %c0: !tfrt.chain) -> !tfrt.chain {
  %zero = tfrt.constant.f32 0.0
  %one = tfrt.constant.f32 1.0
  %minus_rate = tfrt.constant.f32 -0.01
  %rate = tfrt_dht.create_uninitialized_tensor.f32.0 []
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %rate, %c0 0.01 : f32
  %hidden, %found, %c2 = tfrt.call @forward(%image, %w0, %b0, %w1, %b1, %c1)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!t.tensor, !t.tensor, !tfrt.chain)

  // The gradient of the logits, and from it, while w1 is what it was, that of the hidden numbers.
  %c3 = "tfrt_test.subtract_inplace.f32"(%target, %found, %c2) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %w1_turned = tfrt_dht.create_uninitialized_tensor.f32.2 [10 : i64, 256 : i64]
  %c4 = "tfrt_test.tensor_transpose.f32"(%w1, %w1_turned, %c3) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %dhidden = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 256 : i64]
  %c5 = "eigen.matmul.f32"(%one, %found, %w1_turned, %zero, %dhidden, %c4)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %c6 = "tfrt_test.relu_grad_inplace.f32"(%hidden, %dhidden, %c5) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain

  // The second layer: w1 -= rate hidden' gradient, b1 -= rate gradient.
  %hidden_turned = tfrt_dht.create_uninitialized_tensor.f32.2 [256 : i64, 1 : i64]
  %d1 = "tfrt_test.tensor_transpose.f32"(%hidden, %hidden_turned, %c6) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %d2 = "eigen.matmul.f32"(%minus_rate, %hidden_turned, %found, %one, %w1, %d1)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %db1 = tfrt_dht.create_uninitialized_tensor.f32.1 [10 : i64]
  %e1 = "tfrt_test.mean_axis_zero.f32"(%found, %db1, %c6) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %e2 = "tfrt_test.gradient_descent.f32"(%db1, %rate, %b1, %e1) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain

  // The first layer, likewise.
  %image_turned = tfrt_dht.create_uninitialized_tensor.f32.2 [64 : i64, 1 : i64]
  %f1 = "tfrt_test.tensor_transpose.f32"(%image, %image_turned, %c6) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %f2 = "eigen.matmul.f32"(%minus_rate, %image_turned, %dhidden, %one, %w0, %f1)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %db0 = tfrt_dht.create_uninitialized_tensor.f32.1 [256 : i64]
  %g1 = "tfrt_test.mean_axis_zero.f32"(%dhidden, %db0, %c6) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %g2 = "tfrt_test.gradient_descent.f32"(%db0, %rate, %b0, %g1) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %done = tfrt.merge.chains %d2, %e2, %f2, %g2 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %done : !tfrt.chain
}
