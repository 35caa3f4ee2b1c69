// RUN: run

// Arithmetic of small networks.

// CHECK-LABEL: --- Running 'layer':
func.func @layer() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %zero = tfrt.constant.f32 0.0
  %one = tfrt.constant.f32 1.0
  %x = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.2 [3 : i64, 2 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %bias = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %x, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, -1.0 : f32, 0.0 : f32, 1.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %w, %a0 [1.0 : f32, 0.0 : f32, 0.0 : f32, 1.0 : f32, 2.0 : f32, -5.0 : f32]
  %a2 = tfrt_dht.set_tensor_with_constant_values.f32 %bias, %a1 [0.5 : f32, -1.0 : f32]
  // What stands in %y is not looked at, for its factor is 0.
  %a3 = "tfrt_test.matmul.f32.2"(%one, %x, %w, %zero, %y, %a2) : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [7.000000e+00, -1.300000e+01, 1.000000e+00, -5.000000e+00]
  %a4 = tfrt_dht.print_tensor %y, %a3
  %shape = tfrt_dht.get_tensor_shape %y
  %rows = "tfrt_test.broadcast.f32.2"(%bias, %shape, %a4) : (!t.tensor, !ts.shape, !tfrt.chain) -> !t.tensor
  %a5 = "tfrt_test.add_inplace.f32"(%rows, %y, %a4) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [7.500000e+00, -1.400000e+01, 1.500000e+00, -6.000000e+00]
  %a6 = tfrt_dht.print_tensor %y, %a5
  %a7 = "tfrt_test.relu_inplace.f32"(%y, %a6) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [7.500000e+00, 0.000000e+00, 1.500000e+00, 0.000000e+00]
  %a8 = tfrt_dht.print_tensor %y, %a7
  %best = "tfrt_test.argmax.f32.2"(%y, %a8) : (!t.tensor, !tfrt.chain) -> !t.tensor
  // CHECK-NEXT: dtype = i32, shape = [2], values = [0, 0]
  %a9 = tfrt_dht.print_tensor %best, %a8
  // The output of an operation on two tensors may be one of them.
  %b0 = "tfrt_test.add.f32"(%y, %y, %y, %a9) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [1.500000e+01, 0.000000e+00, 3.000000e+00, 0.000000e+00]
  %b1 = tfrt_dht.print_tensor %y, %b0
  tfrt.return %b1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'accuracy':
func.func @accuracy() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %labels = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
  %found = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
  %matches = tfrt_dht.create_uninitialized_tensor.f32.1 [4 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.i32 %labels, %c0 [1 : i32, 2 : i32, 3 : i32, 4 : i32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.i32 %found, %a0 [1 : i32, 0 : i32, 3 : i32, 4 : i32]
  %a2 = "tfrt_test.equal_inplace.i32"(%labels, %found, %a1) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %a3 = "tfrt_test.cast.i32_to_f32"(%found, %matches, %a2) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %mean = "tfrt_test.reduce_mean.f32.1"(%matches, %a3) : (!t.tensor, !tfrt.chain) -> !t.tensor
  // CHECK-NEXT: dtype = f32, shape = [], values = [7.500000e-01]
  %a4 = tfrt_dht.print_tensor %mean, %a3
  tfrt.return %a4 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'images':
func.func @images() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %x, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32]
  %padded = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 4 : i64, 2 : i64, 1 : i64]
  %a1 = "tfrt_test.zero_padding.f32"(%x, %padded, %a0) {padding = [1 : i32, 0 : i32]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [0.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 0.000000e+00, 0.000000e+00]
  %a2 = tfrt_dht.print_tensor %padded, %a1
  %pooled = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 1 : i64, 1 : i64]
  %a3 = "tfrt_test.max_pooling_2d.f32"(%padded, %pooled, %a2) {padding = "same", pool_size = [2 : i32, 2 : i32], strides = [2 : i32, 2 : i32]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [2.000000e+00, 4.000000e+00]
  %a4 = tfrt_dht.print_tensor %pooled, %a3
  %mean = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 1 : i64]
  %a5 = "tfrt_test.global_average_pooling.f32"(%x, %mean, %a4) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: shape = [1, 1], values = [2.500000e+00]
  %a6 = tfrt_dht.print_tensor %mean, %a5
  %flat = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 4 : i64]
  %a7 = "tfrt_test.flatten.f32"(%x, %flat, %a6) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %a8 = "tfrt_test.softmax_inplace.f32"(%flat, %a7) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: shape = [1, 4], values = [3.20586{{[0-9]*}}e-02, 8.71443{{[0-9]*}}e-02, 2.36882{{[0-9]*}}e-01, 6.43914{{[0-9]*}}e-01]
  %a9 = tfrt_dht.print_tensor %flat, %a8
  tfrt.return %a9 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'convolution':
func.func @convolution() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 3 : i64, 1 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 1 : i64, 1 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 3 : i64, 1 : i64]
  %four = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %two = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.f32 %x, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32]
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %w, %a0 [1.0 : f32, -1.0 : f32]
  %a2 = tfrt_dht.fill_tensor_with_constant.f32 %four, %a1 4.0 : f32
  %a3 = tfrt_dht.fill_tensor_with_constant.f32 %two, %a2 2.0 : f32
  %a4 = "eigen.conv2d.f32"(%x, %w, %y, %a3) {padding = "SAME", strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [-1.000000e+00, -1.000000e+00, 3.000000e+00]
  %a5 = tfrt_dht.print_tensor %y, %a4
  %a6 = "eigen.conv2d.bias.f32"(%x, %w, %two, %y, %a5) {padding = "same", strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [1.000000e+00, 1.000000e+00, 5.000000e+00]
  %a7 = tfrt_dht.print_tensor %y, %a6
  // (x - 2) / sqrt(4) * 4 + 2, and then the larger of that and 0.
  %a8 = "eigen.conv2d.batch_norm.relu.f32"(%x, %w, %four, %two, %two, %four, %y, %a7) {epsilon = 0.0 : f32, padding = "same", strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [0.000000e+00, 0.000000e+00, 4.000000e+00]
  %a9 = tfrt_dht.print_tensor %y, %a8
  %dw = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 1 : i64, 1 : i64]
  %b0 = "eigen.conv2d.grad.filter.f32"(%y, %x, %dw, %a9) {padding = "same", strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [1.200000e+01, 0.000000e+00]
  %b1 = tfrt_dht.print_tensor %dw, %b0
  %dx = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 3 : i64, 1 : i64]
  %b2 = "eigen.conv2d.grad.input.f32"(%y, %w, %dx, %b1) {padding = "same", strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [0.000000e+00, 0.000000e+00, 4.000000e+00]
  %b3 = tfrt_dht.print_tensor %dx, %b2
  tfrt.return %b3 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'step':
func.func @step() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %w = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 2 : i64]
  %g = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 1 : i64]
  %turned = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 2 : i64]
  %rate = tfrt_dht.create_uninitialized_tensor.f32.0 []
  %a0 = tfrt_dht.fill_tensor_with_constant.f32 %w, %c0 1.0 : f32
  %a1 = tfrt_dht.set_tensor_with_constant_values.f32 %g, %a0 [2.0 : f32, -4.0 : f32]
  %a2 = tfrt_dht.fill_tensor_with_constant.f32 %rate, %a1 0.5 : f32
  %a3 = "tfrt_test.tensor_transpose.f32"(%g, %turned, %a2) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  %a4 = "tfrt_test.gradient_descent.f32"(%turned, %rate, %w, %a3) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [0.000000e+00, 3.000000e+00]
  %a5 = tfrt_dht.print_tensor %w, %a4
  tfrt.return %a5 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'large_factor':
func.func @large_factor() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %zero = tfrt.constant.i64 0
  // 2^53 + 1, which no float of 64 bits is.
  %large = tfrt.constant.i64 9007199254740993
  %x = tfrt_dht.create_uninitialized_tensor.i64.2 [1 : i64, 1 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.i64.2 [1 : i64, 1 : i64]
  %a0 = tfrt_dht.set_tensor_with_constant_values.i64 %x, %c0 [1 : i64]
  %a1 = "tfrt_test.matmul.i64.2"(%large, %x, %x, %zero, %y, %a0) : (i64, !t.tensor, !t.tensor, i64, !t.tensor, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: values = [9007199254740993]
  %a2 = tfrt_dht.print_tensor %y, %a1
  tfrt.return %a2 : !tfrt.chain
}
