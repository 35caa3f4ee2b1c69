// RUN: run --print-error-code --queue single
// EXIT: 3

// Calls that are wrong or do not agree: each fails on all members, with one error.

// CHECK-LABEL: --- Running 'unknown_function':
// A function that is none fails the call on all members.
func.func @unknown_function() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "product"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'unknown_function' returned <<error: /job:worker/task:1: unexpected reduction_name in AllReduce: expected sum, min, max or mean, found 'product', code: InvalidArgument>>,<<error: /job:worker/task:1: unexpected reduction_name in AllReduce: expected sum, min, max or mean, found 'product', code: InvalidArgument>>

// CHECK-LABEL: --- Running 'unknown_function_alone':
func.func @unknown_function_alone() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [1.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.f32 %ctx, %group, %key, %a0, %a0, %ch {reduction_fn = ""}
  tfrt.return %d0 : !tfrt.chain
}
// CHECK-NEXT: 'unknown_function_alone' returned <<error: /job:worker/task:0: unexpected reduction_name in AllReduce: expected sum, min, max or mean, found '', code: InvalidArgument>>

// CHECK-LABEL: --- Running 'other_functions':
// Members name the one that differs from most.
func.func @other_functions() -> (!tfrt.chain, !tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  %a2 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d2 = tfrt_dist.cpu.allreduce.i32 %ctx#2, %group, %key, %a2, %a2, %ch {reduction_fn = "mean"}
  tfrt.return %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'other_functions' returned <<error: /job:worker/task:2: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:2 has the function mean of 3 leaves in the order of a tree, and /job:worker/task:0 the function sum of 3 leaves in the order of a tree, code: InvalidArgument>>,<<error: /job:worker/task:2: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:2 has the function mean of 3 leaves in the order of a tree, and /job:worker/task:0 the function sum of 3 leaves in the order of a tree, code: InvalidArgument>>,<<error: /job:worker/task:2: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:2 has the function mean of 3 leaves in the order of a tree, and /job:worker/task:0 the function sum of 3 leaves in the order of a tree, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'other_types':
func.func @other_types() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [1.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.f32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'other_types' returned <<error: /job:worker/task:1: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has f32[1], and /job:worker/task:0 i32[1], code: InvalidArgument>>,<<error: /job:worker/task:1: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has f32[1], and /job:worker/task:0 i32[1], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'other_shapes':
func.func @other_shapes() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [1 : i32, 2 : i32, 3 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'other_shapes' returned <<error: /job:worker/task:1: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has i32[3], and /job:worker/task:0 i32[2], code: InvalidArgument>>,<<error: /job:worker/task:1: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has i32[3], and /job:worker/task:0 i32[2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'out_of_another_shape':
func.func @out_of_another_shape() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %o1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 1], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %o1, %ch {reduction_fn = "sum"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'out_of_another_shape' returned <<error: /job:worker/task:1: expected `out` of the shape of `in`, [2], found [2, 1], code: InvalidArgument>>,<<error: /job:worker/task:1: expected `out` of the shape of `in`, [2], found [2, 1], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'tensor_of_another_type':
// The kernel is of one type, and the tensor of another.
func.func @tensor_of_another_type() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [1.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'tensor_of_another_type' returned <<error: /job:worker/task:1: expected `in` of type i32, found f32, code: InvalidArgument>>,<<error: /job:worker/task:1: expected `in` of type i32, found f32, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'other_operations':
func.func @other_operations() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:1"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.i32 %ctx#1, %group, %key, %a1, %s1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'other_operations' returned <<error: /job:worker/task:1: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has the operation broadcast, and /job:worker/task:0 the operation all-reduce, code: InvalidArgument>>,<<error: /job:worker/task:1: all-reduce 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has the operation broadcast, and /job:worker/task:0 the operation all-reduce, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'other_senders':
func.func @other_senders() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:0"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [0.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.f32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:1"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1], values = [0.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.f32 %ctx#1, %group, %key, %a1, %s1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'other_senders' returned <<error: /job:worker/task:1: broadcast 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has the sender 1, and /job:worker/task:0 the sender 0, code: InvalidArgument>>,<<error: /job:worker/task:1: broadcast 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has the sender 1, and /job:worker/task:0 the sender 0, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'broadcast_of_other_shapes':
func.func @broadcast_of_other_shapes() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %s0 = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:0"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.broadcast.f32 %ctx#0, %group, %key, %a0, %s0, %ch
  %s1 = tfrt_dist.get_task_handle %ctx#1 {task_name = "/job:worker/task:0"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [3], values = [0.0 : f32, 1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.broadcast.f32 %ctx#1, %group, %key, %a1, %s1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'broadcast_of_other_shapes' returned <<error: /job:worker/task:1: broadcast 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has f32[3], and /job:worker/task:0 f32[2], code: InvalidArgument>>,<<error: /job:worker/task:1: broadcast 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has f32[3], and /job:worker/task:0 f32[2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'gather_of_other_ranks':
func.func @gather_of_other_ranks() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %axis0 = tfrt.constant.ui64 0
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis0, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1, 2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %axis1 = tfrt.constant.ui64 0
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'gather_of_other_ranks' returned <<error: /job:worker/task:1: all-gather 'one' of group 'all': All workers must have tensors of the same rank.: /job:worker/task:1 has i32[1x2], and /job:worker/task:0 i32[2], code: InvalidArgument>>,<<error: /job:worker/task:1: all-gather 'one' of group 'all': All workers must have tensors of the same rank.: /job:worker/task:1 has i32[1x2], and /job:worker/task:0 i32[2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'gather_of_other_extents':
func.func @gather_of_other_extents() -> (!tfrt.chain, !tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %axis0 = tfrt.constant.ui64 0
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#0, %group, %key, %a0, %axis0, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 3], values = [0.0 : f32, 1.0 : f32, 2.0 : f32]} : () -> !t.tensor
  %axis1 = tfrt.constant.ui64 0
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#1, %group, %key, %a1, %axis1, %ch
  %a2 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [1, 2], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %axis2 = tfrt.constant.ui64 0
  %d2, %o2 = tfrt_dist.cpu.allgather_any_shape.f32 %ctx#2, %group, %key, %a2, %axis2, %ch
  tfrt.return %d0, %d1, %d2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'gather_of_other_extents' returned <<error: /job:worker/task:1: all-gather 'one' of group 'all': All dimensions in the input must be equal except the axis: /job:worker/task:1 has f32[1x3], and /job:worker/task:0 f32[1x2], code: InvalidArgument>>,<<error: /job:worker/task:1: all-gather 'one' of group 'all': All dimensions in the input must be equal except the axis: /job:worker/task:1 has f32[1x3], and /job:worker/task:0 f32[1x2], code: InvalidArgument>>,<<error: /job:worker/task:1: all-gather 'one' of group 'all': All dimensions in the input must be equal except the axis: /job:worker/task:1 has f32[1x3], and /job:worker/task:0 f32[1x2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'gather_by_other_axes':
func.func @gather_by_other_axes() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 2], values = [0 : i32, 1 : i32, 2 : i32, 3 : i32]} : () -> !t.tensor
  %axis0 = tfrt.constant.ui64 0
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis0, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 2], values = [0 : i32, 1 : i32, 2 : i32, 3 : i32]} : () -> !t.tensor
  %axis1 = tfrt.constant.ui64 1
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'gather_by_other_axes' returned <<error: /job:worker/task:1: all-gather 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has the axis 1, and /job:worker/task:0 the axis 0, code: InvalidArgument>>,<<error: /job:worker/task:1: all-gather 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has the axis 1, and /job:worker/task:0 the axis 0, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'gather_by_an_axis_that_is_none':
// What makes no sense by itself is told in place of a difference.
func.func @gather_by_an_axis_that_is_none() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %axis0 = tfrt.constant.ui64 0
  %d0, %o0 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#0, %group, %key, %a0, %axis0, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %axis1 = tfrt.constant.ui64 1
  %d1, %o1 = tfrt_dist.cpu.allgather_any_shape.i32 %ctx#1, %group, %key, %a1, %axis1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'gather_by_an_axis_that_is_none' returned <<error: /job:worker/task:1: expected an axis below the rank of the input, 1, found 1, code: InvalidArgument>>,<<error: /job:worker/task:1: expected an axis below the rank of the input, 1, found 1, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'gather_fixed_of_other_shapes':
func.func @gather_fixed_of_other_shapes() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2], values = [0 : i32, 1 : i32]} : () -> !t.tensor
  %axis0 = tfrt.constant.ui64 0
  %o0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [4], values = [0 : i32, 1 : i32, 2 : i32, 3 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allgather_fixed_shape.i32 %ctx#0, %group, %key, %a0, %o0, %axis0, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [3], values = [0 : i32, 1 : i32, 2 : i32]} : () -> !t.tensor
  %axis1 = tfrt.constant.ui64 0
  %o1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [6], values = [0 : i32, 1 : i32, 2 : i32, 3 : i32, 4 : i32, 5 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allgather_fixed_shape.i32 %ctx#1, %group, %key, %a1, %o1, %axis1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'gather_fixed_of_other_shapes' returned <<error: /job:worker/task:1: all-gather 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has i32[3], and /job:worker/task:0 i32[2], code: InvalidArgument>>,<<error: /job:worker/task:1: all-gather 'one' of group 'all': the members of the group do not agree: /job:worker/task:1 has i32[3], and /job:worker/task:0 i32[2], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'gather_into_another_extent':
// What does not fit on one member fails all.
func.func @gather_into_another_extent() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2, 1], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %axis0 = tfrt.constant.ui64 1
  %o0 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2, 2], values = [0.0 : f32, 1.0 : f32, 2.0 : f32, 3.0 : f32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allgather_fixed_shape.f32 %ctx#0, %group, %key, %a0, %o0, %axis0, %ch
  %a1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [2, 1], values = [0.0 : f32, 1.0 : f32]} : () -> !t.tensor
  %axis1 = tfrt.constant.ui64 1
  %o1 = "tfrt_dht_sync.create_dense_tensor.f32"() {shape = [4, 1], values = [0.0 : f32, 1.0 : f32, 2.0 : f32, 3.0 : f32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allgather_fixed_shape.f32 %ctx#1, %group, %key, %a1, %o1, %axis1, %ch
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'gather_into_another_extent' returned <<error: /job:worker/task:1: Incorrect output dimension. All dimensions in the output must be equal except the axis.: expected [2, 2], found [4, 1], code: InvalidArgument>>,<<error: /job:worker/task:1: Incorrect output dimension. All dimensions in the output must be equal except the axis.: expected [2, 2], found [4, 1], code: InvalidArgument>>

// CHECK-LABEL: --- Running 'unknown_group':
func.func @unknown_group() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %none = tfrt_test.get_string {value = "none"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx, %none, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  tfrt.return %d0 : !tfrt.chain
}
// CHECK-NEXT: 'unknown_group' returned <<error: there is no collective group 'none': there are all, code: NotFound>>

// CHECK-LABEL: --- Running 'name_twice':
// Each call needs a name of its own; the first one is not disturbed.
func.func @name_twice() -> (!tfrt.chain, !tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [2 : i32]} : () -> !t.tensor
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %ch {reduction_fn = "sum"}
  %all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  %again0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %all {reduction_fn = "sum"}
  %again1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %all {reduction_fn = "sum"}
  %p0 = tfrt_dht.print_tensor %a0, %all
  tfrt.return %again0, %again1, %p0 : !tfrt.chain, !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [3]
// CHECK-NEXT: 'name_twice' returned <<error: there was a collective 'one' of group 'all' already: each call needs a name of its own, code: AlreadyExists>>,<<error: there was a collective 'one' of group 'all' already: each call needs a name of its own, code: AlreadyExists>>,!tfrt.chain value

// CHECK-LABEL: --- Running 'after_close':
// A task that is gone fails what others call.
func.func @after_close() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %c = tfrt_dist.test_close_distributed_context %ctx#1, %ch
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %c {reduction_fn = "sum"}
  tfrt.return %d0 : !tfrt.chain
}
// CHECK-NEXT: 'after_close' returned <<error: /job:worker/task:1: task /job:worker/task:1 is lost, code: Unavailable>>

// CHECK-LABEL: --- Running 'chain_of_one_member_fails':
// A member whose operands fail does not leave the others waiting.
func.func @chain_of_one_member_fails() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %a0, %ch {reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %never = "tfrt_test.error_chain"(%ch) : (!tfrt.chain) -> !tfrt.chain
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %a1, %never {reduction_fn = "sum"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'chain_of_one_member_fails' returned <<error: /job:worker/task:1: error chain, code: Unknown>>,<<error: /job:worker/task:1: error chain, code: Unknown>>

// CHECK-LABEL: --- Running 'leaves_of_another_number':
// Of three leaves the second member has one.
func.func @leaves_of_another_number() -> (!tfrt.chain, !tfrt.chain) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "one"}
  %a0 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 1], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %o0 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %d0 = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a0, %o0, %ch {leaves = 3 : i64, reduction_fn = "sum"}
  %a1 = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [2, 1], values = [1 : i32, 2 : i32]} : () -> !t.tensor
  %o1 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %d1 = tfrt_dist.cpu.allreduce.i32 %ctx#1, %group, %key, %a1, %o1, %ch {leaves = 3 : i64, reduction_fn = "sum"}
  tfrt.return %d0, %d1 : !tfrt.chain, !tfrt.chain
}
// CHECK-NEXT: 'leaves_of_another_number' returned <<error: /job:worker/task:1: expected `in` of shape [1, 1], the 1 of 3 leaves that member 1 of 2 has, found [2, 1], code: InvalidArgument>>,<<error: /job:worker/task:1: expected `in` of shape [1, 1], the 1 of 3 leaves that member 1 of 2 has, found [2, 1], code: InvalidArgument>>
