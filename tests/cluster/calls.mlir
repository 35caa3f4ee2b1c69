// RUN: run --cluster auto
// TASKS: 3

// Functions of a program on three processes, of which the lead runs the program.

// CHECK-LABEL: --- Running 'twice':
// Results stay on the task that made them, and are used there.
func.func @twice() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %ctx, %t1) "twice" "func.func @twice(%x: i32) -> i32 { %y = tfrt.add.i32 %x, %x tfrt.return %y : i32 }"
  %r2 = tfrt_dist.register_tfrt_function(%r1, %ctx, %t1) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %c0, %a = tfrt_dist.remote_execute[%r2, %ctx, %t1, %s1] "make" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%r2, %ctx, %t1, %s1] "twice" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %c2, %c = tfrt_dist.remote_execute[%r2, %ctx, %t1, %s1] "show" (%b) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: int32 = 42
// CHECK-NEXT: 'twice' returned

// CHECK-LABEL: --- Running 'nested':
// A task asks another.
func.func @nested() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "inner" "func.func @inner() -> !tfrt.chain { %a = tfrt.constant.i32 5 %c = tfrt.new.chain %d = tfrt.print.i32 %a, %c tfrt.return %d : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %ctx, %t1) "outer" "func.func @outer(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:2\22} %s = tfrt_dist.create_remote_execute_spec %ctx {output_devices = [\22/job:worker/task:2/device:CPU:0\22]} %d, %i = tfrt_dist.remote_execute[%c, %ctx, %t, %s] \22inner\22 () : () -> (!tfrt_dist.remote_object_id) %x = tfrt.constant.i32 6 %p = tfrt.print.i32 %x, %d tfrt.return %p : !tfrt.chain }"
  %c, %i = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "outer" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 5
// CHECK-NEXT: int32 = 6
// CHECK-NEXT: 'nested' returned

// CHECK-LABEL: --- Running 'values':
// A task sends another a tensor.
func.func @values() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %t1 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %s1 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %t2 = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:2"}
  %s2 = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:2/device:CPU:0"]}
  %r1 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t1) "send" "func.func @send(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:2\22} %k = tfrt_test.get_string {value = \22k\22} %a = tfrt_dht.create_uninitialized_tensor.i32.1 [3 : i64] %f = tfrt_dht.fill_tensor_with_constant.i32 %a, %c 9 : i32 %p = tfrt_dist.serialize %a, %f %s = tfrt_dist.send_bytes %ctx, %t, %k, %p tfrt.return %s : !tfrt.chain }"
  %r2 = tfrt_dist.register_tfrt_function(%ch, %ctx, %t2) "receive" "func.func @receive(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:1\22} %k = tfrt_test.get_string {value = \22k\22} %p = tfrt_dist.recv_bytes %ctx, %t, %k %u = tfrt_dist.deserialize %p %d = tfrt_dht.print_tensor %u, %c tfrt.return %d : !tfrt.chain }"
  %c2, %i2 = tfrt_dist.remote_execute[%r2, %ctx, %t2, %s2] "receive" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %i1 = tfrt_dist.remote_execute[%r1, %ctx, %t1, %s1] "send" () : () -> (!tfrt_dist.remote_object_id)
  %c = tfrt.merge.chains %c1, %c2 : !tfrt.chain, !tfrt.chain
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3], values = [9, 9, 9]
// CHECK-NEXT: 'values' returned
