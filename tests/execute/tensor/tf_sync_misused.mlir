// RUN: run
// EXIT: 3

// What is said where operands and attributes of tf_sync do not fit.

// CHECK: 'unknown_fusion' returned <<error: Unsupported fusion type: Relu>>
func.func @unknown_fusion() attributes {tfrt.sync} {
  %a = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 1], values = [1.0 : f32]} : () -> !t.tensor
  %bias = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [0.5 : f32]} : () -> !t.tensor
  %out = tfrt_dht_sync.create_uninitialized_tensor.f32.2 [1 : i64, 1 : i64]
  "tf_sync._FusedMatMul.f32"(%a, %a, %out, %bias) {fused_ops = ["Relu"], transpose_a = true, transpose_b = true} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()
  tfrt.return
}

// CHECK: 'no_fusion' returned <<error: FusedMatMul must specify fused operations>>
func.func @no_fusion() attributes {tfrt.sync} {
  %a = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 1], values = [1.0 : f32]} : () -> !t.tensor
  %out = tfrt_dht_sync.create_uninitialized_tensor.f32.2 [1 : i64, 1 : i64]
  "tf_sync._FusedMatMul.f32"(%a, %a, %out, %a) {fused_ops = [], transpose_a = true, transpose_b = true} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()
  tfrt.return
}

// CHECK: 'bias_that_is_no_vector' returned <<error: Bias tensor must be a vector of 1 elements, found [1, 1]>>
func.func @bias_that_is_no_vector() attributes {tfrt.sync} {
  %a = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 1], values = [1.0 : f32]} : () -> !t.tensor
  %out = tfrt_dht_sync.create_uninitialized_tensor.f32.2 [1 : i64, 1 : i64]
  "tf_sync._FusedMatMul.f32"(%a, %a, %out, %a) {fused_ops = ["BiasAdd"], transpose_a = true, transpose_b = true} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()
  tfrt.return
}

// CHECK: 'no_such_axis' returned <<error: there is no dimension -2 in tensors of 1 dimensions>>
func.func @no_such_axis() attributes {tfrt.sync} {
  %x = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [7 : i32]} : () -> !t.tensor
  %axis = "tfrt.constant_s.i32"() {value = -2 : i32} : () -> i32
  "tf_sync.ConcatV2.i32"(%axis, %x, %x, %x) : (i32, !t.tensor, !t.tensor, !t.tensor) -> ()
  tfrt.return
}

// CHECK: 'repeated_less_than_never' returned <<error: expected how often to repeat each dimension, found [-7]>>
func.func @repeated_less_than_never() attributes {tfrt.sync} {
  %x = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [-7 : i32]} : () -> !t.tensor
  %out = tfrt_dht_sync.create_uninitialized_tensor.i32.1 [1 : i64]
  "tf_sync.Tile.i32"(%x, %x, %out) : (!t.tensor, !t.tensor, !t.tensor) -> ()
  tfrt.return
}

// CHECK: 'constant_of_other_type' returned <<error: {{.*}}can't take the elements of one of f32 [1]>>
func.func @constant_of_other_type() attributes {tfrt.sync} {
  %out = tfrt_dht_sync.create_uninitialized_tensor.i32.1 [1 : i64]
  "tf_sync.Const"(%out) {value = dense<1.0> : tensor<1xf32>} : (!t.tensor) -> ()
  tfrt.return
}
