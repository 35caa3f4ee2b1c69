// RUN: run

// One member's tensor is written into that of each other.

// CHECK-LABEL: --- Running 'alone':
func.func @alone() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [0 : i32, 1 : i32, 2 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.i32 %ctx, %group, %key, %a0, %s0, %ch
  %all = tfrt.merge.chains %d0, %ch : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  tfrt.return %p0 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [0, 1, 2]

// CHECK-LABEL: --- Running 'first_of_two':
func.func @first_of_two() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:0"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [0 : i32, 1 : i32, 2 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.i32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:0"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [100 : i32, 101 : i32, 102 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.i32 %ctx#1, %group, %key, %a1, %s1, %ch
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [0, 1, 2]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [0, 1, 2]

// CHECK-LABEL: --- Running 'second_of_two':
func.func @second_of_two() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [0.0 : f32, 1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.f32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:1"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [100.0 : f32, 101.0 : f32, 102.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.f32 %ctx#1, %group, %key, %a1, %s1, %ch
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [1.000000e+02, 1.010000e+02, 1.020000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [1.000000e+02, 1.010000e+02, 1.020000e+02]

// CHECK-LABEL: --- Running 'first_of_three':
func.func @first_of_three() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:0"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [0.0 : f32, 1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.f32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:0"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [100.0 : f32, 101.0 : f32, 102.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.f32 %ctx#1, %group, %key, %a1, %s1, %ch
  %s2 = tfrt_dist.get_task_handle %ctx#2 {task_name = "/job:worker/task:0"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [200.0 : f32, 201.0 : f32, 202.0 : f32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.broadcast.f32 %ctx#2, %group, %key, %a2, %s2, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [0.000000e+00, 1.000000e+00, 2.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [0.000000e+00, 1.000000e+00, 2.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [0.000000e+00, 1.000000e+00, 2.000000e+00]

// CHECK-LABEL: --- Running 'second_of_three':
func.func @second_of_three() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [0 : i32, 1 : i32, 2 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.i32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:1"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [100 : i32, 101 : i32, 102 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.i32 %ctx#1, %group, %key, %a1, %s1, %ch
  %s2 = tfrt_dist.get_task_handle %ctx#2 {task_name = "/job:worker/task:1"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [200 : i32, 201 : i32, 202 : i32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.broadcast.i32 %ctx#2, %group, %key, %a2, %s2, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [100, 101, 102]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [100, 101, 102]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [100, 101, 102]

// CHECK-LABEL: --- Running 'third_of_three':
func.func @third_of_three() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:2"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [0.0 : f32, 1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.f32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:2"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [100.0 : f32, 101.0 : f32, 102.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.f32 %ctx#1, %group, %key, %a1, %s1, %ch
  %s2 = tfrt_dist.get_task_handle %ctx#2 {task_name = "/job:worker/task:2"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [200.0 : f32, 201.0 : f32, 202.0 : f32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.broadcast.f32 %ctx#2, %group, %key, %a2, %s2, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [2.000000e+02, 2.010000e+02, 2.020000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [2.000000e+02, 2.010000e+02, 2.020000e+02]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [3], values = [2.000000e+02, 2.010000e+02, 2.020000e+02]

// CHECK-LABEL: --- Running 'last_of_four':
func.func @last_of_four() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:4 = tfrt_dist.test_create_configurations : 4
  %ctx:4 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2, %config#3 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:3"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [0 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.i32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:3"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [100 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.i32 %ctx#1, %group, %key, %a1, %s1, %ch
  %s2 = tfrt_dist.get_task_handle %ctx#2 {task_name = "/job:worker/task:3"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [200 : i32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.broadcast.i32 %ctx#2, %group, %key, %a2, %s2, %ch
  %s3 = tfrt_dist.get_task_handle %ctx#3 {task_name = "/job:worker/task:3"}
  %a3 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [300 : i32]} : () -> !t.tensor
  %d3 = tfrt_dist.cpu.broadcast.i32 %ctx#3, %group, %key, %a3, %s3, %ch
  %all = tfrt.merge.chains %d0, %d1, %d2, %d3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  %p3 = tfrt_dht.print_tensor %a3, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [300]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [300]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [300]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [300]

// CHECK-LABEL: --- Running 'many_elements':
// More than travel with the announcement: each member gets a share, and sends it to all.
func.func @many_elements() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  %a0 = tfrt_dht.create_uninitialized_tensor.i32.1 [100001 : i64]
  %f0 = tfrt_dht.fill_tensor_with_constant.i32 %a0, %ch 1 : i32
  %d0 = tfrt_dist.cpu.broadcast.i32 %ctx#0, %group, %key, %a0, %s0, %f0
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:1"}
  %a1 = tfrt_dht.create_uninitialized_tensor.i32.1 [100001 : i64]
  %f1 = tfrt_dht.fill_tensor_with_constant.i32 %a1, %ch 2 : i32
  %d1 = tfrt_dist.cpu.broadcast.i32 %ctx#1, %group, %key, %a1, %s1, %f1
  %s2 = tfrt_dist.get_task_handle %ctx#2 {task_name = "/job:worker/task:1"}
  %a2 = tfrt_dht.create_uninitialized_tensor.i32.1 [100001 : i64]
  %f2 = tfrt_dht.fill_tensor_with_constant.i32 %a2, %ch 3 : i32
  %d2 = tfrt_dist.cpu.broadcast.i32 %ctx#2, %group, %key, %a2, %s2, %f2
  %b = tfrt_dht.create_uninitialized_tensor.i32.1 [100001 : i64]
  %g = tfrt_dht.fill_tensor_with_constant.i32 %b, %ch 2 : i32
  %all = tfrt.merge.chains %d0, %d1, %d2, %g : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %e0, %x0 = tfrt_dht.tensor_equal.i32 %a0, %b, %all
  %p0 = tfrt.print.i1 %e0, %x0
  %e1, %x1 = tfrt_dht.tensor_equal.i32 %a1, %b, %p0
  %p1 = tfrt.print.i1 %e1, %x1
  %e2, %x2 = tfrt_dht.tensor_equal.i32 %a2, %b, %p1
  %p2 = tfrt.print.i1 %e2, %x2
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: int1 = 1
// CHECK-NEXT: int1 = 1
// CHECK-NEXT: int1 = 1
