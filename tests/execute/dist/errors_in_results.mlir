// RUN: run --print-error-code --queue single
// EXIT: 3

// An error in a result is none of the call: it stays with the task, until somebody asks for the result.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'error_stays':
func.func @error_stays() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "fail" "func.func @fail() -> i32 { %a = \22tfrt_test.fail\22() : () -> i32 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "fail" () : () -> (!tfrt_dist.remote_object_id)
  %one = tfrt.constant.i32 1
  %d = tfrt.print.i32 %one, %c
  tfrt.return %d : !tfrt.chain
}
// CHECK-NEXT: int32 = 1

// CHECK-LABEL: --- Running 'error_passes':
func.func @error_passes() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "fail" "func.func @fail() -> i32 { %a = \22tfrt_test.fail\22() : () -> i32 tfrt.return %a : i32 }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "through" "func.func @through() -> !corert.tensorhandle { %a = \22tfrt_test.error_tensorhandle\22() : () -> !corert.tensorhandle tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "through" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  tfrt.return %h : !corert.tensorhandle
}
// CHECK-NEXT: 'error_passes' returned <<error: /job:worker/task:1: invalid tensorhandle, code: Unknown>>

// CHECK-LABEL: --- Running 'late_error':
func.func @late_error() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "late" "func.func @late(%c: !tfrt.chain) -> !tfrt.chain { %d = \22tfrt_test.error_chain\22(%c) : (!tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "chain" "func.func @chain() -> !tfrt.chain { %c = tfrt.new.chain tfrt.return %c : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "chain" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%r, %m, %task, %spec] "late" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %c, %d = tfrt_dist.remote_execute[%r, %m, %task, %spec] "late" (%b) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %one = tfrt.constant.i32 2
  %e = tfrt.print.i32 %one, %c
  tfrt.return %e : !tfrt.chain
}
// CHECK-NEXT: int32 = 2

// What a refused call was to make is an error where it is used.
// CHECK-LABEL: --- Running 'refused_and_used':
func.func @refused_and_used() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "twice" "func.func @twice(%x: i32) -> i32 { %y = tfrt.add.i32 %x, %x tfrt.return %y : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "nope" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%r, %m, %task, %spec] "twice" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %three = tfrt.constant.i32 3
  %c = tfrt.print.i32 %three, %c1
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 3
