// RUN: run

// All members of a group reduce their tensors to one, which all of them get: in place, or into another tensor, where the
// input stays as it was.

// CHECK-LABEL: --- Running 'alone_mean_i32':
func.func @alone_mean_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [7 : i32, -7 : i32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx, %group, %key, %a0, %o0, %ch {reduction_fn = "mean"}
  %all = tfrt.merge.chains %d0, %ch : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %a0, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [7, -7]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [7, -7]

// CHECK-LABEL: --- Running 'alone_sum_f32':
func.func @alone_sum_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [1.5 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %ch : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  tfrt.return %p0 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [1.500000e+00]

// CHECK-LABEL: --- Running 'two_sum_i32':
// Three elements among two members.
func.func @two_sum_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [1 : i32, 2 : i32, 3 : i32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.i32.1 [3 : i64]
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %o0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [10 : i32, 20 : i32, 30 : i32]} : () -> !t.tensor
  %o1 = tfrt_dht.create_uninitialized_tensor.i32.1 [3 : i64]
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %o1, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %a0, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [11, 22, 33]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [11, 22, 33]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [1, 2, 3]

// CHECK-LABEL: --- Running 'two_sum_i32_wraps':
// One element among two members.
func.func @two_sum_i32_wraps() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [2147483647 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [-2147483648]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [-2147483648]

// CHECK-LABEL: --- Running 'two_min_f32':
// As many elements as members.
func.func @two_min_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [1.0 : f32, -2.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "min"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [0.5 : f32, 3.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "min"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [5.000000e-01, -2.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [5.000000e-01, -2.000000e+00]

// CHECK-LABEL: --- Running 'two_max_f32':
func.func @two_max_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [1.0 : f32, -2.0 : f32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %o0, %ch {reduction_fn = "max"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [0.5 : f32, 3.0 : f32]} : () -> !t.tensor
  %o1 = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %o1, %ch {reduction_fn = "max"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %a0, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [1.000000e+00, 3.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [1.000000e+00, 3.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [1.000000e+00, -2.000000e+00]

// CHECK-LABEL: --- Running 'three_mean_i32':
// A mean is rounded towards zero.
func.func @three_mean_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [4], values = [1 : i32, -1 : i32, 5 : i32, 0 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "mean"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [4], values = [2 : i32, -2 : i32, 5 : i32, 0 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "mean"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [4], values = [2 : i32, -2 : i32, 6 : i32, -1 : i32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.allreduce.i32 %ctx#2, %group, %key, %a2, %a2, %ch {reduction_fn = "mean"}
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [1, -1, 5, 0]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [1, -1, 5, 0]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [4], values = [1, -1, 5, 0]

// CHECK-LABEL: --- Running 'three_min_i32':
// Fewer elements than members.
func.func @three_min_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [4 : i32, 1 : i32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %o0, %ch {reduction_fn = "min"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [2 : i32, 9 : i32]} : () -> !t.tensor
  %o1 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %o1, %ch {reduction_fn = "min"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [3 : i32, -5 : i32]} : () -> !t.tensor
  %o2 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %d2 = tfrt_dist.cpu.allreduce.i32 %ctx#2, %group, %key, %a2, %o2, %ch {reduction_fn = "min"}
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  %p3 = tfrt_dht.print_tensor %a0, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [2, -5]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [2, -5]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [2, -5]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [4, 1]

// CHECK-LABEL: --- Running 'three_max_i32':
func.func @three_max_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [4 : i32, 1 : i32, 0 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "max"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [2 : i32, 9 : i32, 0 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "max"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [3 : i32, -5 : i32, 0 : i32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.allreduce.i32 %ctx#2, %group, %key, %a2, %a2, %ch {reduction_fn = "max"}
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [4, 9, 0]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [4, 9, 0]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [4, 9, 0]

// CHECK-LABEL: --- Running 'three_sum_f32':
func.func @three_sum_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [5], values = [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32, 5.0 : f32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.f32.1 [5 : i64]
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %o0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [5], values = [0.5 : f32, 0.5 : f32, 0.5 : f32, 0.5 : f32, 0.5 : f32]} : () -> !t.tensor
  %o1 = tfrt_dht.create_uninitialized_tensor.f32.1 [5 : i64]
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %o1, %ch {reduction_fn = "sum"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [5], values = [10.0 : f32, 10.0 : f32, 10.0 : f32, 10.0 : f32, 10.0 : f32]} : () -> !t.tensor
  %o2 = tfrt_dht.create_uninitialized_tensor.f32.1 [5 : i64]
  %d2 = tfrt_dist.cpu.allreduce.f32 %ctx#2, %group, %key, %a2, %o2, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  %p3 = tfrt_dht.print_tensor %a0, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [5], values = [1.150000e+01, 1.250000e+01, 1.350000e+01, 1.450000e+01, 1.550000e+01]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [5], values = [1.150000e+01, 1.250000e+01, 1.350000e+01, 1.450000e+01, 1.550000e+01]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [5], values = [1.150000e+01, 1.250000e+01, 1.350000e+01, 1.450000e+01, 1.550000e+01]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [5], values = [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00]

// CHECK-LABEL: --- Running 'four_mean_f32':
func.func @four_mean_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:4 = tfrt_dist.test_create_configurations : 4
  %ctx:4 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2, %config#3 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "mean"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [2.0 : f32, 4.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "mean"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [3.0 : f32, 6.0 : f32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.allreduce.f32 %ctx#2, %group, %key, %a2, %a2, %ch {reduction_fn = "mean"}
  %a3 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [4.0 : f32, 8.0 : f32]} : () -> !t.tensor
  %d3 = tfrt_dist.cpu.allreduce.f32 %ctx#3, %group, %key, %a3, %a3, %ch {reduction_fn = "mean"}
  %all = tfrt.merge.chains %d0, %d1, %d2, %d3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  %p3 = tfrt_dht.print_tensor %a3, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [2.500000e+00, 5.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [2.500000e+00, 5.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [2.500000e+00, 5.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [2.500000e+00, 5.000000e+00]

// CHECK-LABEL: --- Running 'four_sum_in_the_order_of_a_tree':
// (1e8 + 1) + (-1e8 + 1), which rounds to 0.
func.func @four_sum_in_the_order_of_a_tree() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:4 = tfrt_dist.test_create_configurations : 4
  %ctx:4 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2, %config#3 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [100000000.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [1.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [-100000000.0 : f32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.allreduce.f32 %ctx#2, %group, %key, %a2, %a2, %ch {reduction_fn = "sum"}
  %a3 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [1.0 : f32]} : () -> !t.tensor
  %d3 = tfrt_dist.cpu.allreduce.f32 %ctx#3, %group, %key, %a3, %a3, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1, %d2, %d3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %a2, %p1
  %p3 = tfrt_dht.print_tensor %a3, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [0.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [0.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [0.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [0.000000e+00]

// CHECK-LABEL: --- Running 'four_sum_i32':
func.func @four_sum_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:4 = tfrt_dist.test_create_configurations : 4
  %ctx:4 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2, %config#3 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [6], values = [0 : i32, 1 : i32, 2 : i32, 3 : i32, 4 : i32, 5 : i32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.i32.1 [6 : i64]
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %o0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [6], values = [10 : i32, 11 : i32, 12 : i32, 13 : i32, 14 : i32, 15 : i32]} : () -> !t.tensor
  %o1 = tfrt_dht.create_uninitialized_tensor.i32.1 [6 : i64]
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %o1, %ch {reduction_fn = "sum"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [6], values = [20 : i32, 21 : i32, 22 : i32, 23 : i32, 24 : i32, 25 : i32]} : () -> !t.tensor
  %o2 = tfrt_dht.create_uninitialized_tensor.i32.1 [6 : i64]
  %d2 = tfrt_dist.cpu.allreduce.i32 %ctx#2, %group, %key, %a2, %o2, %ch {reduction_fn = "sum"}
  %a3 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [6], values = [30 : i32, 31 : i32, 32 : i32, 33 : i32, 34 : i32, 35 : i32]} : () -> !t.tensor
  %o3 = tfrt_dht.create_uninitialized_tensor.i32.1 [6 : i64]
  %d3 = tfrt_dist.cpu.allreduce.i32 %ctx#3, %group, %key, %a3, %o3, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1, %d2, %d3 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  %p2 = tfrt_dht.print_tensor %o2, %p1
  %p3 = tfrt_dht.print_tensor %o3, %p2
  %p4 = tfrt_dht.print_tensor %a0, %p3
  tfrt.return %p4 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [60, 64, 68, 72, 76, 80]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [60, 64, 68, 72, 76, 80]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [60, 64, 68, 72, 76, 80]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [60, 64, 68, 72, 76, 80]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [0, 1, 2, 3, 4, 5]

// CHECK-LABEL: --- Running 'no_elements':
// There is nothing to reduce, and all agree on it.
func.func @no_elements() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = tfrt_dht.create_uninitialized_tensor.f32.1 [0 : i64]
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = tfrt_dht.create_uninitialized_tensor.f32.1 [0 : i64]
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  tfrt.return %p0 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [0], values = []

// CHECK-LABEL: --- Running 'many_elements':
// More than travel with the announcement: each member reduces its share, and sends it to all.
func.func @many_elements() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = tfrt_dht.create_uninitialized_tensor.f32.1 [1048577 : i64]
  %f0 = tfrt_dht.fill_tensor_with_constant.f32 %a0, %ch 1.0 : f32
  %b0 = tfrt_dht.create_uninitialized_tensor.f32.1 [1048577 : i64]
  %g0 = tfrt_dht.fill_tensor_with_constant.f32 %b0, %ch 6.0 : f32
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx#0, %group, %key, %a0, %a0, %f0 {reduction_fn = "sum"}
  %a1 = tfrt_dht.create_uninitialized_tensor.f32.1 [1048577 : i64]
  %f1 = tfrt_dht.fill_tensor_with_constant.f32 %a1, %ch 2.0 : f32
  %b1 = tfrt_dht.create_uninitialized_tensor.f32.1 [1048577 : i64]
  %g1 = tfrt_dht.fill_tensor_with_constant.f32 %b1, %ch 6.0 : f32
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %a1, %f1 {reduction_fn = "sum"}
  %a2 = tfrt_dht.create_uninitialized_tensor.f32.1 [1048577 : i64]
  %f2 = tfrt_dht.fill_tensor_with_constant.f32 %a2, %ch 3.0 : f32
  %b2 = tfrt_dht.create_uninitialized_tensor.f32.1 [1048577 : i64]
  %g2 = tfrt_dht.fill_tensor_with_constant.f32 %b2, %ch 6.0 : f32
  %d2 = tfrt_dist.cpu.allreduce.f32 %ctx#2, %group, %key, %a2, %a2, %f2 {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %g0, %d1, %g1, %d2, %g2 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %e0, %x0 = tfrt_dht.tensor_equal.f32 %a0, %b0, %all
  %p0 = tfrt.print.i1 %e0, %x0
  %e1, %x1 = tfrt_dht.tensor_equal.f32 %a1, %b1, %p0
  %p1 = tfrt.print.i1 %e1, %x1
  %e2, %x2 = tfrt_dht.tensor_equal.f32 %a2, %b2, %p1
  %p2 = tfrt.print.i1 %e2, %x2
  tfrt.return %p2 : !tfrt.chain
}
// CHECK-NEXT: int1 = 1
// CHECK-NEXT: int1 = 1
// CHECK-NEXT: int1 = 1

// CHECK-LABEL: --- Running 'two_at_once':
// Calls of other names run beside each other, whichever a member makes first.
func.func @two_at_once() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %other = tfrt_test.get_string {value = "two"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %b0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [10 : i32, 20 : i32]} : () -> !t.tensor
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [2 : i32, 2 : i32]} : () -> !t.tensor
  %b1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [11 : i32, 20 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %e0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %other, %b0, %b0, %ch {reduction_fn = "sum"}
  %e1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %other, %b1, %b1, %ch {reduction_fn = "sum"}
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %e0, %d1, %e1 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  %p1 = tfrt_dht.print_tensor %a1, %p0
  %p2 = tfrt_dht.print_tensor %b0, %p1
  %p3 = tfrt_dht.print_tensor %b1, %p2
  tfrt.return %p3 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [3, 4]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [3, 4]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [21, 40]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [21, 40]

// CHECK-LABEL: --- Running 'two_of_three_leaves':
// Three leaves among two members: the first has two of them, one behind the other.
func.func @two_of_three_leaves() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f64"() {shape = [2, 2], values = [1.0 : f64, 2.0 : f64, 3.0 : f64, 4.0 : f64]} : () -> !t.tensor
  %o0 = "tfrt_dht.create_uninitialized_tensor.f64.1"() {shape = [2 : i64]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.f64 %ctx#0, %group, %key, %a0, %o0, %ch {leaves = 3 : i64, reduction_fn = "mean"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f64"() {shape = [1, 2], values = [5.0 : f64, 9.0 : f64]} : () -> !t.tensor
  %o1 = "tfrt_dht.create_uninitialized_tensor.f64.1"() {shape = [2 : i64]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.f64 %ctx#1, %group, %key, %a1, %o1, %ch {leaves = 3 : i64, order = "tree", reduction_fn = "mean"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %o0, %all
  %p1 = tfrt_dht.print_tensor %o1, %p0
  tfrt.return %p1 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f64, shape = [2], values = [3.000000e+00, 5.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f64, shape = [2], values = [3.000000e+00, 5.000000e+00]

// CHECK-LABEL: --- Running 'two_by_a_ring':
// The order of a ring is for those who ask for it.
func.func @two_by_a_ring() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i64"() {shape = [3], values = [1 : i64, 2 : i64, 3 : i64]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i64 %ctx#0, %group, %key, %a0, %a0, %ch {order = "ring", reduction_fn = "max"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i64"() {shape = [3], values = [4 : i64, -2 : i64, 1 : i64]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i64 %ctx#1, %group, %key, %a1, %a1, %ch {order = "ring", reduction_fn = "max"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %p0 = tfrt_dht.print_tensor %a0, %all
  tfrt.return %p0 : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i64, shape = [3], values = [4, 2, 3]
