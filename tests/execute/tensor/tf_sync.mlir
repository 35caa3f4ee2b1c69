// RUN: run

// CHECK-LABEL: --- Running 'of_two'
func.func @of_two() attributes {tfrt.sync} {
  %column = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 1], values = [10 : i32, 20 : i32]} : () -> !t.tensor
  %row = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [3 : i32, 4 : i32]} : () -> !t.tensor
  %out = tfrt_dht_sync.create_uninitialized_tensor.i32.2 [2 : i64, 2 : i64]
  "tf_sync.AddV2.i32"(%column, %row, %out) : (!t.tensor, !t.tensor, !t.tensor) -> ()
  // CHECK: shape = [2, 2], values = [13, 14, 23, 24]
  tfrt_dht_sync.print_tensor %out
  "tf_sync.Sub.i32"(%column, %row, %out) : (!t.tensor, !t.tensor, !t.tensor) -> ()
  // CHECK: values = [7, 6, 17, 16]
  tfrt_dht_sync.print_tensor %out
  "tf_sync.Mul.i32"(%column, %row, %out) : (!t.tensor, !t.tensor, !t.tensor) -> ()
  // CHECK: values = [30, 40, 60, 80]
  tfrt_dht_sync.print_tensor %out
  "tf_sync.RealDiv.i32"(%column, %row, %out) : (!t.tensor, !t.tensor, !t.tensor) -> ()
  // CHECK: values = [3, 2, 6, 5]
  tfrt_dht_sync.print_tensor %out
  tfrt.return
}

// CHECK-LABEL: --- Running 'turned_product'
func.func @turned_product() attributes {tfrt.sync} {
  %a = "tfrt_dht_sync.create_dense_tensor.f64"() {shape = [1, 2], values = [1.0 : f64, -2.0 : f64]} : () -> !t.tensor
  %b = "tfrt_dht_sync.create_dense_tensor.f64"() {shape = [2, 1], values = [3.0 : f64, 4.0 : f64]} : () -> !t.tensor
  %bias = "tfrt_dht_sync.create_dense_tensor.f64"() {shape = [2], values = [0.5 : f64, 0.0 : f64]} : () -> !t.tensor
  %out = "tfrt_dht_sync.create_uninitialized_tensor.f64.2"() {shape = [2 : i64, 2 : i64]} : () -> !t.tensor
  "tf_sync._FusedMatMul.f64"(%a, %b, %out, %bias) {fused_ops = ["BiasAdd", "Relu6"], transpose_a = true, transpose_b = true} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()
  // CHECK: shape = [2, 2], values = [3.500000e+00, 4.000000e+00, 0.000000e+00, 0.000000e+00]
  tfrt_dht_sync.print_tensor %out
  tfrt.return
}

// CHECK-LABEL: --- Running 'joined'
func.func @joined() attributes {tfrt.sync} {
  %x = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [7 : i32]} : () -> !t.tensor
  %out = tfrt_dht_sync.create_uninitialized_tensor.i32.1 [2 : i64]
  %last = "tfrt.constant_s.i32"() {value = -1 : i32} : () -> i32
  "tf_sync.ConcatV2.i32"(%last, %x, %x, %out) : (i32, !t.tensor, !t.tensor, !t.tensor) -> ()
  // CHECK: shape = [2], values = [7, 7]
  tfrt_dht_sync.print_tensor %out
  tfrt.return
}
