// RUN: run --queue single
// EXIT: 3

// Chains of other tasks, and the order of requests there.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'chain_of_task':
func.func @chain_of_task() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %id = tfrt_dist.get_chain_for_task_handle %ch, %chains, %task
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "after" "func.func @after(%c: !tfrt.chain) -> !tfrt.chain { %a = tfrt.constant.i32 7 %d = tfrt.print.i32 %a, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %d = tfrt_dist.remote_execute[%r, %m, %task, %spec] "after" (%id) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %set = tfrt_dist.set_chain_for_task_handle %c0, %chains, %task, %d
  %e = tfrt_dist.get_chain_for_task_handle %set, %chains, %task
  %c, %f = tfrt_dist.remote_execute[%set, %m, %task, %spec] "after" (%e) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 7
// CHECK-NEXT: int32 = 7

// CHECK-LABEL: --- Running 'released_in_order':
func.func @released_in_order() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %held = tfrt_dist.test_hold_requests %w, %ch
  %r0 = tfrt_dist.register_tfrt_function(%held, %m, %task) "one" "func.func @one() -> !tfrt.chain { %a = tfrt.constant.i32 1 %c = tfrt.new.chain %d = tfrt.print.i32 %a, %c tfrt.return %d : !tfrt.chain }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "two" "func.func @two() -> !tfrt.chain { %a = tfrt.constant.i32 2 %c = tfrt.new.chain %d = tfrt.print.i32 %a, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "one" () : () -> (!tfrt_dist.remote_object_id)
  %p0 = tfrt_dist.test_process_next_request %w, %r
  %c1 = tfrt.merge.chains %c0, %p0 : !tfrt.chain, !tfrt.chain
  %c2, %b = tfrt_dist.remote_execute[%c1, %m, %task, %spec] "two" () : () -> (!tfrt_dist.remote_object_id)
  %p1 = tfrt_dist.test_process_next_request %w, %c1
  %c = tfrt.merge.chains %c2, %p1 : !tfrt.chain, !tfrt.chain
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 1
// CHECK-NEXT: int32 = 2

// CHECK-LABEL: --- Running 'used_before_made':
func.func @used_before_made() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %held = tfrt_dist.test_hold_requests %w, %ch
  %r0 = tfrt_dist.register_tfrt_function(%held, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%r, %m, %task, %spec] "show" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %p0 = tfrt_dist.test_process_next_request %w, %r
  %p1 = tfrt_dist.test_process_next_request %w, %p0
  %c = tfrt.merge.chains %c0, %c1, %p0, %p1 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 21

// CHECK-LABEL: --- Running 'chain_error':
func.func @chain_error() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %bad = "tfrt_test.error_chain"(%ch) : (!tfrt.chain) -> !tfrt.chain
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%bad, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'chain_error' returned <<error: error chain>>

// Chains of both tasks: what one prints comes behind what the other has printed.
// CHECK-LABEL: --- Running 'one_after_the_other':
func.func @one_after_the_other() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %own = tfrt_dist.get_task_handle %m {task_name = "/job:worker/task:0"}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "one" "func.func @one() -> !tfrt.chain { %a = tfrt.constant.i32 1 %c = tfrt.new.chain %d = tfrt.print.i32 %a, %c tfrt.return %d : !tfrt.chain }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %own) "two" "func.func @two() -> !tfrt.chain { %a = tfrt.constant.i32 2 %c = tfrt.new.chain %d = tfrt.print.i32 %a, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %here = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "one" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%c0, %m, %own, %here] "two" () : () -> (!tfrt_dist.remote_object_id)
  %c, %d = tfrt_dist.remote_execute[%c1, %m, %task, %spec] "one" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 1
// CHECK-NEXT: int32 = 2
// CHECK-NEXT: int32 = 1
