// RUN: run
// EXIT: 5

// What does not fit is told, with what was expected and what was found.

// CHECK-LABEL: --- Running 'inner':
// CHECK-NEXT: 'inner' returned <<error: MatMul input tensors inner dimension mismatch: [2, 3] vs. [2, 3]>>
func.func @inner() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.f32 1.0
  %x = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %done = "tfrt_test.matmul.f32.2"(%one, %x, %x, %one, %x, %c0) : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'types':
// CHECK-NEXT: 'types' returned <<error: expected a tensor of f32, found one of i32 [2]>>
func.func @types() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %done = "tfrt_test.relu_inplace.f32"(%x, %c0) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'shapes':
// CHECK-NEXT: 'shapes' returned <<error: tensor shape mismatch: [2] vs. [3]>>
func.func @shapes() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %y = tfrt_dht.create_uninitialized_tensor.f32.1 [3 : i64]
  %done = "tfrt_test.add_inplace.f32"(%x, %y, %c0) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'padding':
// CHECK-NEXT: 'padding' returned <<error: MaxPool2D padding 'full' is not recognized>>
func.func @padding() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.max_pooling_2d.f32"(%x, %x, %c0) {padding = "full", pool_size = [2 : i64, 2 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'strides':
// CHECK-NEXT: 'strides' returned <<error: MaxPool2D expects strides to have 2 elements, found 1>>
func.func @strides() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.max_pooling_2d.f32"(%x, %x, %c0) {padding = "valid", pool_size = [2 : i64, 2 : i64], strides = [1 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'no_stride':
// CHECK-NEXT: 'no_stride' returned <<error: a window has an extent, a stride and a dilation above 0, found 2, 0 and 1>>
func.func @no_stride() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.max_pooling_2d.f32"(%x, %x, %c0) {padding = "valid", pool_size = [2 : i64, 2 : i64], strides = [0 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'too_small':
// CHECK-NEXT: 'too_small' returned <<error: MaxPool2D output shape [1, 2, 2, 1] does not match the expected output shape [1, 1, 1, 1]>>
func.func @too_small() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.max_pooling_2d.f32"(%x, %x, %c0) {padding = "valid", pool_size = [2 : i64, 2 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'zeros':
// CHECK-NEXT: 'zeros' returned <<error: ZeroPadding output shape [1, 2, 2, 1] does not match the padded input shape, which is that of [1, 2, 2, 1] with 1 rows and 0 columns on each side>>
func.func @zeros() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.zero_padding.f32"(%x, %x, %c0) {padding = [1 : i64, 0 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'negative':
// CHECK-NEXT: 'negative' returned <<error: ZeroPadding expects padding of 0 or more, found -1>>
func.func @negative() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.zero_padding.f32"(%x, %x, %c0) {padding = [-1 : i64, 0 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'channels':
// CHECK-NEXT: 'channels' returned <<error: Dimensions does not match: input channels is 1 and kernel depth is 2, with 1 filters in 1 groups>>
func.func @channels() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %w = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.conv2d.f32"(%x, %w, %x, %c0) {padding = "same", strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'nothing':
// CHECK-NEXT: 'nothing' returned <<error: there is nothing to reduce, and no result for that>>
func.func @nothing() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.1 [0 : i64]
  %mean = "tfrt_test.reduce_mean.f32.1"(%x, %c0) : (!t.tensor, !tfrt.chain) -> !t.tensor
  %done = tfrt_dht.print_tensor %mean, %c0
  tfrt.return %done : !tfrt.chain
}

// A tensor without elements may have extents that no list of positions fits.
// CHECK-LABEL: --- Running 'rows_of_nothing':
// CHECK-NEXT: 'rows_of_nothing' returned <<error: there is no element whose position could be found>>
func.func @rows_of_nothing() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.2 [1099511627776 : i64, 0 : i64]
  %best = "tfrt_test.argmax.f32.2"(%x, %c0) : (!t.tensor, !tfrt.chain) -> !t.tensor
  %done = tfrt_dht.print_tensor %best, %c0
  tfrt.return %done : !tfrt.chain
}

// CHECK-LABEL: --- Running 'window_of_any_size':
// CHECK-NEXT: 'window_of_any_size' returned <<error: windows, or what they look at, do not fit any memory>>
func.func @window_of_any_size() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %done = "eigen.max_pooling_2d.f32"(%x, %x, %c0) {padding = "same", pool_size = [4611686018427387904 : i64, 4 : i64], strides = [1 : i64, 1 : i64]} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}
