// RUN: run

// Functions that run on another task. Names of results are used before these are made.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'three_calls':
func.func @three_calls() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %m, %task) "twice" "func.func @twice(%x: i32) -> i32 { %y = tfrt.add.i32 %x, %x tfrt.return %y : i32 }"
  %r2 = tfrt_dist.register_tfrt_function(%r1, %m, %task) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r2, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%r2, %m, %task, %spec] "twice" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %c, %done = tfrt_dist.remote_execute[%r2, %m, %task, %spec] "show" (%b) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 42

// CHECK-LABEL: --- Running 'no_results':
func.func @no_results() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "nothing" "func.func @nothing() { tfrt.return }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = []}
  %c = tfrt_dist.remote_execute[%r, %m, %task, %spec] "nothing" () : () -> ()
  tfrt.return %c : !tfrt.chain
}

// CHECK-LABEL: --- Running 'three_results':
func.func @three_results() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "three" "func.func @three() -> (i32, i32, i32) { %a = tfrt.constant.i32 1 %b = tfrt.constant.i32 2 %c = tfrt.constant.i32 3 tfrt.return %a, %b, %c : i32, i32, i32 }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0"]}
  %one = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %b, %d = tfrt_dist.remote_execute[%r, %m, %task, %spec] "three" () : () -> (!tfrt_dist.remote_object_id, !tfrt_dist.remote_object_id, !tfrt_dist.remote_object_id)
  %c, %x = tfrt_dist.remote_execute[%r, %m, %task, %one] "show" (%d) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 3

// CHECK-LABEL: --- Running 'own_task':
func.func @own_task() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %own = tfrt_dist.get_task_handle %m {task_name = "/job:worker/task:0/device:CPU:0"}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %own) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %own) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:0/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %own, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  %c, %x = tfrt_dist.remote_execute[%r, %m, %own, %spec] "show" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 21

// CHECK-LABEL: --- Running 'strings':
func.func @strings() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "text" "func.func @text() -> !tfrt.string { %a = \22tfrt_test.get_string\22() {value = \22hello\22} : () -> !tfrt.string tfrt.return %a : !tfrt.string }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "say" "func.func @say(%x: !tfrt.string) -> !tfrt.chain { %c = tfrt.new.chain %d = \22tfrt_test.print_string\22(%x, %c) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "text" () : () -> (!tfrt_dist.remote_object_id)
  %c, %x = tfrt_dist.remote_execute[%r, %m, %task, %spec] "say" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: string = hello

// CHECK-LABEL: --- Running 'nested':
func.func @nested() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "inner" "func.func @inner(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %m, %task) "outer" "func.func @outer(%ctx: !tfrt_dist.dist_context, %x: i32) -> !tfrt.chain { %c = tfrt.new.chain %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:0\22} %r = tfrt_dist.register_tfrt_function(%c, %ctx, %t) \22made\22 \22func.func @made() -> i32 { %a = tfrt.constant.i32 5 tfrt.return %a : i32 }\22 %s = tfrt_dist.create_remote_execute_spec %ctx {output_devices = [\22/job:worker/task:0/device:CPU:0\22]} %d, %i = tfrt_dist.remote_execute[%r, %ctx, %t, %s] \22made\22 () : () -> (!tfrt_dist.remote_object_id) %p = tfrt.print.i32 %x, %d tfrt.return %p : !tfrt.chain }"
  %r = tfrt_dist.register_tfrt_function(%r1, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  %c, %x = tfrt_dist.remote_execute[%r, %m, %task, %spec] "outer" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 21

// CHECK-LABEL: --- Running 'context_of_the_request':
func.func @context_of_the_request() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "f" "func.func @f() -> !tfrt.chain { %ctx = tfrt_dist.get_distributed_context %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:1\22} %c = tfrt.new.chain %c1 = tfrt.merge.chains %c, %t : !tfrt.chain, !tfrt_dist.task_handle %n = tfrt.constant.i32 4 %d = tfrt.print.i32 %n, %c1 tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %x = tfrt_dist.remote_execute[%r, %m, %task, %spec] "f" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 4
