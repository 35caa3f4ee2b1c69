// RUN: run --cluster auto
// TASKS: 3

// Collectives of three processes: the lead has each of them call its part, and each prints what it has.

// CHECK-LABEL: --- Running 'sum_i32':
// Sums.
func.func @sum_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t0 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %s0 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t0) "sum_i32" "func.func @sum_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22sum\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [2], values = [1 : i32, 2 : i32]} : () -> !t.tensor %d = tfrt_dist.cpu.allreduce.i32 %ctx, %g, %k, %a, %a, %c {reduction_fn = \22sum\22} %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "sum_i32" "func.func @sum_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22sum\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [2], values = [10 : i32, 20 : i32]} : () -> !t.tensor %d = tfrt_dist.cpu.allreduce.i32 %ctx, %g, %k, %a, %a, %c {reduction_fn = \22sum\22} %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %r2 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "sum_i32" "func.func @sum_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22sum\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [2], values = [100 : i32, 200 : i32]} : () -> !t.tensor %d = tfrt_dist.cpu.allreduce.i32 %ctx, %g, %k, %a, %a, %c {reduction_fn = \22sum\22} %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %c0, %i0 = tfrt_dist.remote_execute[%r0, %ctx, %t0, %s0] "sum_i32" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %i1 = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "sum_i32" () : () -> (!tfrt_dist.remote_object_id)
  %c2, %i2 = tfrt_dist.remote_execute[%r2, %ctx, %t2, %s2] "sum_i32" () : () -> (!tfrt_dist.remote_object_id)
  %all = tfrt.merge.chains %c0, %c1, %c2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %all : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [111, 222]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [111, 222]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [111, 222]
// CHECK-NEXT: 'sum_i32' returned

// CHECK-LABEL: --- Running 'mean_f32':
// Means.
func.func @mean_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t0 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %s0 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t0) "mean_f32" "func.func @mean_f32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22mean\22} %a = \22tfrt_dht_sync.create_dense_tensor.f32\22() {shape = [1], values = [1.0 : f32]} : () -> !t.tensor %d = tfrt_dist.cpu.allreduce.f32 %ctx, %g, %k, %a, %a, %c {reduction_fn = \22mean\22} %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "mean_f32" "func.func @mean_f32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22mean\22} %a = \22tfrt_dht_sync.create_dense_tensor.f32\22() {shape = [1], values = [2.0 : f32]} : () -> !t.tensor %d = tfrt_dist.cpu.allreduce.f32 %ctx, %g, %k, %a, %a, %c {reduction_fn = \22mean\22} %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %r2 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "mean_f32" "func.func @mean_f32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22mean\22} %a = \22tfrt_dht_sync.create_dense_tensor.f32\22() {shape = [1], values = [6.0 : f32]} : () -> !t.tensor %d = tfrt_dist.cpu.allreduce.f32 %ctx, %g, %k, %a, %a, %c {reduction_fn = \22mean\22} %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %c0, %i0 = tfrt_dist.remote_execute[%r0, %ctx, %t0, %s0] "mean_f32" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %i1 = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "mean_f32" () : () -> (!tfrt_dist.remote_object_id)
  %c2, %i2 = tfrt_dist.remote_execute[%r2, %ctx, %t2, %s2] "mean_f32" () : () -> (!tfrt_dist.remote_object_id)
  %all = tfrt.merge.chains %c0, %c1, %c2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %all : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [3.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [3.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [3.000000e+00]
// CHECK-NEXT: 'mean_f32' returned

// CHECK-LABEL: --- Running 'broadcast_i32':
// The tensor of the last one.
func.func @broadcast_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t0 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %s0 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t0) "broadcast_i32" "func.func @broadcast_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22broadcast\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [3], values = [0 : i32, 0 : i32, 0 : i32]} : () -> !t.tensor %s = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:2\22} %d = tfrt_dist.cpu.broadcast.i32 %ctx, %g, %k, %a, %s, %c %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "broadcast_i32" "func.func @broadcast_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22broadcast\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [3], values = [0 : i32, 0 : i32, 0 : i32]} : () -> !t.tensor %s = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:2\22} %d = tfrt_dist.cpu.broadcast.i32 %ctx, %g, %k, %a, %s, %c %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %r2 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "broadcast_i32" "func.func @broadcast_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22broadcast\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [3], values = [7 : i32, 8 : i32, 9 : i32]} : () -> !t.tensor %s = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:2\22} %d = tfrt_dist.cpu.broadcast.i32 %ctx, %g, %k, %a, %s, %c %p = tfrt_dht.print_tensor %a, %d tfrt.return %p : !tfrt.chain }"
  %c0, %i0 = tfrt_dist.remote_execute[%r0, %ctx, %t0, %s0] "broadcast_i32" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %i1 = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "broadcast_i32" () : () -> (!tfrt_dist.remote_object_id)
  %c2, %i2 = tfrt_dist.remote_execute[%r2, %ctx, %t2, %s2] "broadcast_i32" () : () -> (!tfrt_dist.remote_object_id)
  %all = tfrt.merge.chains %c0, %c1, %c2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %all : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [7, 8, 9]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [7, 8, 9]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [7, 8, 9]
// CHECK-NEXT: 'broadcast_i32' returned

// CHECK-LABEL: --- Running 'gather_i32':
// Tensors of different extents, one behind the other.
func.func @gather_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t0 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %s0 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t0) "gather_i32" "func.func @gather_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22gather\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [1], values = [1 : i32]} : () -> !t.tensor %x = tfrt.constant.ui64 0 %d, %o = tfrt_dist.cpu.allgather_any_shape.i32 %ctx, %g, %k, %a, %x, %c %p = tfrt_dht.print_tensor %o, %d tfrt.return %p : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "gather_i32" "func.func @gather_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22gather\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [2], values = [2 : i32, 3 : i32]} : () -> !t.tensor %x = tfrt.constant.ui64 0 %d, %o = tfrt_dist.cpu.allgather_any_shape.i32 %ctx, %g, %k, %a, %x, %c %p = tfrt_dht.print_tensor %o, %d tfrt.return %p : !tfrt.chain }"
  %r2 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "gather_i32" "func.func @gather_i32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22gather\22} %a = \22tfrt_dht_sync.create_dense_tensor.i32\22() {shape = [3], values = [4 : i32, 5 : i32, 6 : i32]} : () -> !t.tensor %x = tfrt.constant.ui64 0 %d, %o = tfrt_dist.cpu.allgather_any_shape.i32 %ctx, %g, %k, %a, %x, %c %p = tfrt_dht.print_tensor %o, %d tfrt.return %p : !tfrt.chain }"
  %c0, %i0 = tfrt_dist.remote_execute[%r0, %ctx, %t0, %s0] "gather_i32" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %i1 = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "gather_i32" () : () -> (!tfrt_dist.remote_object_id)
  %c2, %i2 = tfrt_dist.remote_execute[%r2, %ctx, %t2, %s2] "gather_i32" () : () -> (!tfrt_dist.remote_object_id)
  %all = tfrt.merge.chains %c0, %c1, %c2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %all : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [1, 2, 3, 4, 5, 6]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [1, 2, 3, 4, 5, 6]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [6], values = [1, 2, 3, 4, 5, 6]
// CHECK-NEXT: 'gather_i32' returned

// CHECK-LABEL: --- Running 'large_f32':
// More than travels with an announcement.
func.func @large_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t0 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %s0 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t0) "large_f32" "func.func @large_f32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22large\22} %a = tfrt_dht.create_uninitialized_tensor.f32.1 [65536 : i64] %f = tfrt_dht.fill_tensor_with_constant.f32 %a, %c 1.5 : f32 %d = tfrt_dist.cpu.allreduce.f32 %ctx, %g, %k, %a, %a, %f {reduction_fn = \22max\22} %z = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64] %y = tfrt_dht.fill_tensor_with_constant.f32 %z, %d 1.0 : f32 %p = tfrt_dht.print_tensor %z, %y tfrt.return %p : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "large_f32" "func.func @large_f32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22large\22} %a = tfrt_dht.create_uninitialized_tensor.f32.1 [65536 : i64] %f = tfrt_dht.fill_tensor_with_constant.f32 %a, %c 2.5 : f32 %d = tfrt_dist.cpu.allreduce.f32 %ctx, %g, %k, %a, %a, %f {reduction_fn = \22max\22} %z = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64] %y = tfrt_dht.fill_tensor_with_constant.f32 %z, %d 1.0 : f32 %p = tfrt_dht.print_tensor %z, %y tfrt.return %p : !tfrt.chain }"
  %r2 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "large_f32" "func.func @large_f32(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %g = tfrt_test.get_string {value = \22all\22} %k = tfrt_test.get_string {value = \22large\22} %a = tfrt_dht.create_uninitialized_tensor.f32.1 [65536 : i64] %f = tfrt_dht.fill_tensor_with_constant.f32 %a, %c 0.5 : f32 %d = tfrt_dist.cpu.allreduce.f32 %ctx, %g, %k, %a, %a, %f {reduction_fn = \22max\22} %z = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64] %y = tfrt_dht.fill_tensor_with_constant.f32 %z, %d 1.0 : f32 %p = tfrt_dht.print_tensor %z, %y tfrt.return %p : !tfrt.chain }"
  %c0, %i0 = tfrt_dist.remote_execute[%r0, %ctx, %t0, %s0] "large_f32" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %i1 = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "large_f32" () : () -> (!tfrt_dist.remote_object_id)
  %c2, %i2 = tfrt_dist.remote_execute[%r2, %ctx, %t2, %s2] "large_f32" () : () -> (!tfrt_dist.remote_object_id)
  %all = tfrt.merge.chains %c0, %c1, %c2 : !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %all : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [1.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [1.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1], values = [1.000000e+00]
// CHECK-NEXT: 'large_f32' returned
