// RUN: run

// All members' tensors are joined along an axis, along which their extents may differ.

// CHECK-LABEL: --- Running 'alone':
func.func @alone() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 0
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx, %group, %key, %a0, %axis, %ch
  %all = tfrt.merge.chains %d0, %ch : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  tfrt.return %p0 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [0.000000e+00, 1.000000e+00]

// CHECK-LABEL: --- Running 'two_axis_0':
func.func @two_axis_0() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 0
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [100 : i32, 101 : i32, 102 : i32]} : () -> !t.tensor
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis, %ch
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [5], values = [0, 1, 100, 101, 102]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [5], values = [0, 1, 100, 101, 102]

// CHECK-LABEL: --- Running 'three_axis_0':
func.func @three_axis_0() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 0
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#0, %group, %key, %a0, %axis, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2, 2], values = [100.0 : f32, 101.0 : f32, 102.0 : f32, 103.0 : f32]} : () -> !t.tensor
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#1, %group, %key, %a1, %axis, %ch
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2], values = [200.0 : f32, 201.0 : f32]} : () -> !t.tensor
  %d2, %o2 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#2, %group, %key, %a2, %axis, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [4, 2], values = [0.000000e+00, 1.000000e+00, 1.000000e+02, 1.010000e+02, 1.020000e+02, 1.030000e+02, 2.000000e+02, 2.010000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [4, 2], values = [0.000000e+00, 1.000000e+00, 1.000000e+02, 1.010000e+02, 1.020000e+02, 1.030000e+02, 2.000000e+02, 2.010000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [4, 2], values = [0.000000e+00, 1.000000e+00, 1.000000e+02, 1.010000e+02, 1.020000e+02, 1.030000e+02, 2.000000e+02, 2.010000e+02]

// CHECK-LABEL: --- Running 'two_axis_1':
func.func @two_axis_1() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 1
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 1], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 3], values = [100 : i32, 101 : i32, 102 : i32, 103 : i32, 104 : i32, 105 : i32]} : () -> !t.tensor
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis, %ch
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 4], values = [0, 100, 101, 102, 1, 103, 104, 105]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 4], values = [0, 100, 101, 102, 1, 103, 104, 105]

// CHECK-LABEL: --- Running 'three_axis_2':
func.func @three_axis_2() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 2
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2, 1], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#0, %group, %key, %a0, %axis, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2, 2], values = [100.0 : f32, 101.0 : f32, 102.0 : f32, 103.0 : f32]} : () -> !t.tensor
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#1, %group, %key, %a1, %axis, %ch
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2, 3], values = [200.0 : f32, 201.0 : f32, 202.0 : f32, 203.0 : f32, 204.0 : f32, 205.0 : f32]} : () -> !t.tensor
  %d2, %o2 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#2, %group, %key, %a2, %axis, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1, 2, 6], values = [0.000000e+00, 1.000000e+02, 1.010000e+02, 2.000000e+02, 2.010000e+02, 2.020000e+02, 1.000000e+00, 1.020000e+02, 1.030000e+02, 2.030000e+02, 2.040000e+02, 2.050000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1, 2, 6], values = [0.000000e+00, 1.000000e+02, 1.010000e+02, 2.000000e+02, 2.010000e+02, 2.020000e+02, 1.000000e+00, 1.020000e+02, 1.030000e+02, 2.030000e+02, 2.040000e+02, 2.050000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1, 2, 6], values = [0.000000e+00, 1.000000e+02, 1.010000e+02, 2.000000e+02, 2.010000e+02, 2.020000e+02, 1.000000e+00, 1.020000e+02, 1.030000e+02, 2.030000e+02, 2.040000e+02, 2.050000e+02]

// CHECK-LABEL: --- Running 'one_has_nothing':
func.func @one_has_nothing() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 0
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis, %ch
  %a1 = tfrt_dht.create_uninitialized_tensor.i32.1 [0 : i64]
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis, %ch
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [200 : i32]} : () -> !t.tensor
  %d2, %o2 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#2, %group, %key, %a2, %axis, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [0, 1, 200]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [0, 1, 200]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [0, 1, 200]

// CHECK-LABEL: --- Running 'four_alike':
func.func @four_alike() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:4 = tfrt_dist.test_create_configurations : 4
  %ctx:4 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2, %config#3 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %axis = tfrt.constant.ui64 0
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [0 : i32]} : () -> !t.tensor
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [100 : i32]} : () -> !t.tensor
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis, %ch
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [200 : i32]} : () -> !t.tensor
  %d2, %o2 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#2, %group, %key, %a2, %axis, %ch
  %a3 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [300 : i32]} : () -> !t.tensor
  %d3, %o3 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#3, %group, %key, %a3, %axis, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2, %d3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  %p3 = tfrt_dht.print_tensor %o3, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [0, 100, 200, 300]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [0, 100, 200, 300]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [0, 100, 200, 300]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [0, 100, 200, 300]
