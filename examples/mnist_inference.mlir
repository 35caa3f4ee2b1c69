// RUN: run

// Images of digits through a perceptron, in the form of the original's program for MNIST: tensors are read from
// a file, 100 images [100, 64] become classes, and the share of those that are right is printed.
//
// The file is made by `cargo run --release -p tfrt-networks --example digits -- --model mlp --save examples/mnist.btf`.

func.func @main() -> !tfrt.chain {
  %path = tfrt_test.get_string {value = "examples/mnist.btf"}
  %i0 = tfrt.constant.i32 0
  %i1 = tfrt.constant.i32 1
  %i2 = tfrt.constant.i32 2
  %i3 = tfrt.constant.i32 3
  %i4 = tfrt.constant.i32 4
  %i5 = tfrt.constant.i32 5
  %w0 = "btf.read_dense_tensor.f32.2"(%path, %i0) : (!tfrt.string, i32) -> !t.tensor
  %b0 = "btf.read_dense_tensor.f32.1"(%path, %i1) : (!tfrt.string, i32) -> !t.tensor
  %w1 = "btf.read_dense_tensor.f32.2"(%path, %i2) : (!tfrt.string, i32) -> !t.tensor
  %b1 = "btf.read_dense_tensor.f32.1"(%path, %i3) : (!tfrt.string, i32) -> !t.tensor
  %images = "btf.read_dense_tensor.f32.2"(%path, %i4) : (!tfrt.string, i32) -> !t.tensor
  %labels = "btf.read_dense_tensor.i32.1"(%path, %i5) : (!tfrt.string, i32) -> !t.tensor

  %c0 = tfrt.new.chain
  %right = tfrt.call @accuracy(%images, %labels, %w0, %b0, %w1, %b1)
      : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor) -> !t.tensor
  // CHECK: shape = [], values = [9.900000e-01]
  %c1 = tfrt_dht.print_tensor %right, %c0
  tfrt.return %c1 : !tfrt.chain
}

// The share of the images whose class is their label.
func.func private @accuracy(%images: !t.tensor, %labels: !t.tensor,
    %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, %b1: !t.tensor) -> !t.tensor {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.f32 1.0

  // hidden = relu(images w0 + b0): the product is added to rows that are b0.
  %hidden_shape = ts.build_shape [100 : i64, 256 : i64]
  %hidden = "tfrt_test.broadcast.f32.2"(%b0, %hidden_shape, %c0) : (!t.tensor, !ts.shape, !tfrt.chain) -> !t.tensor
  %c1 = "tfrt_test.matmul.f32.2"(%one, %images, %w0, %one, %hidden, %c0)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.relu_inplace.f32"(%hidden, %c1) : (!t.tensor, !tfrt.chain) -> !tfrt.chain

  // logits = hidden w1 + b1
  %logits_shape = ts.build_shape [100 : i64, 10 : i64]
  %logits = "tfrt_test.broadcast.f32.2"(%b1, %logits_shape, %c0) : (!t.tensor, !ts.shape, !tfrt.chain) -> !t.tensor
  %c3 = "tfrt_test.matmul.f32.2"(%one, %hidden, %w1, %one, %logits, %c2)
      : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain

  // 1 where the largest logit stands at the label, and the mean of that.
  %classes = "tfrt_test.argmax.f32.2"(%logits, %c3) : (!t.tensor, !tfrt.chain) -> !t.tensor
  %c4 = "tfrt_test.equal_inplace.i32"(%labels, %classes, %c3) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %matches = tfrt_dht.create_uninitialized_tensor.f32.1 [100 : i64]
  %c5 = "tfrt_test.cast.i32_to_f32"(%classes, %matches, %c4) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %mean = "tfrt_test.reduce_mean.f32.1"(%matches, %c5) : (!t.tensor, !tfrt.chain) -> !t.tensor
  tfrt.return %mean : !t.tensor
}
