// RUN: run --print-error-code --queue single
// EXIT: 3

// Contexts: made on all tasks, and ended.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'use_after_close':
func.func @use_after_close() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %closed = tfrt_dist.test_close_distributed_context %w, %ch
  %c = tfrt_dist.register_tfrt_function(%closed, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'use_after_close' returned <<error: /job:worker/task:1: task /job:worker/task:1 is lost, code: Unavailable>>

// CHECK-LABEL: --- Running 'own_server_closed':
func.func @own_server_closed() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %closed = tfrt_dist.test_close_distributed_context %m, %ch
  %c = tfrt_dist.register_tfrt_function(%closed, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'own_server_closed' returned <<error: context 0 was closed, code: Cancelled>>

// CHECK-LABEL: --- Running 'waits_for_a_lost_task':
func.func @waits_for_a_lost_task() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %got = tfrt_dist.recv_bytes %m, %task, %key
  %closed = tfrt_dist.test_close_distributed_context %w, %ch
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %closed
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'waits_for_a_lost_task' returned <<error: /job:worker/task:1: task /job:worker/task:1 is lost, code: Unavailable>>

// CHECK-LABEL: --- Running 'waits_for_one_lost_before':
func.func @waits_for_one_lost_before() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %closed = tfrt_dist.test_close_distributed_context %w, %ch
  %r = tfrt_dist.register_tfrt_function(%closed, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %got = tfrt_dist.recv_bytes %m, %task, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %ch
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'waits_for_one_lost_before' returned <<error: /job:worker/task:1: task /job:worker/task:1 is lost, code: Unavailable>>

// CHECK-LABEL: --- Running 'held_when_closed':
func.func @held_when_closed() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %held = tfrt_dist.test_hold_requests %w, %ch
  %r = tfrt_dist.register_tfrt_function(%held, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  %reg = tfrt_dist.register_tfrt_function(%r, %m, %task) "other" "func.func @other() { tfrt.return }"
  %closed = tfrt_dist.test_close_distributed_context %w, %reg
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'held_when_closed' returned <<error: /job:worker/task:1: task /job:worker/task:1 is lost: the RemoteExecute that it was sent may have run, code: Unknown>>

// CHECK-LABEL: --- Running 'one_task':
func.func @one_task() -> !tfrt.chain {
  %config = tfrt_dist.test_create_configurations : 1
  %ctx = tfrt_dist.test_create_distributed_context %config : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  %own = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:0"}
  %ch = tfrt.new.chain
  %r = tfrt_dist.register_tfrt_function(%ch, %ctx, %own) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %one = tfrt.constant.i32 1
  %c = tfrt.print.i32 %one, %r
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 1

// CHECK-LABEL: --- Running 'missing_task':
func.func @missing_task() -> !tfrt_dist.dist_context {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx = tfrt_dist.test_create_distributed_context %config#0 : (!tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context)
  tfrt.return %ctx : !tfrt_dist.dist_context
}
// CHECK-NEXT: 'missing_task' returned <<error: /job:worker/task:1: nobody listens at {{.*}}, where task /job:worker/task:1 should{{.*}}, code: Unavailable>>

// CHECK-LABEL: --- Running 'no_remote_device':
func.func @no_remote_device() -> !tfrt.device {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %d = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:7"}
  tfrt.return %d : !tfrt.device
}
// CHECK-NEXT: 'no_remote_device' returned <<error: cannot find remote device /job:worker/task:1/device:CPU:7, code: DeviceNotFound>>
