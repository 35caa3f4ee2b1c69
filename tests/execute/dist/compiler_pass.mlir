// RUN: run --print-error-code --queue single
// EXIT: 3

// Programs that a compiler pass goes over before they are registered.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'no_pass_compiles':
func.func @no_pass_compiles() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = []}
  %s = tfrt_dist.register_tf_function(%r0, %m, %task) "twice" "func.func @twice(%x: i32) -> i32 { tfrt.return %x : i32 }"
  tfrt_dist.test_print_remote_execute_spec %s
  %c = tfrt.merge.chains %r0, %s : !tfrt.chain, !tfrt_dist.remote_execute_spec
  tfrt.return %c : !tfrt.chain
}
// CHECK: RemoteExecuteSpec:[ ]

// CHECK-LABEL: --- Running 'devices_of_a_pass':
func.func @devices_of_a_pass() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %d = tfrt_test.get_string {value = "/job:worker/task:1/device:CPU:0"}
  %p = tfrt_dist.test_register_fake_compiler_pass "tfrt" "func.func @made() -> i32 { %a = tfrt.constant.i32 8 tfrt.return %a : i32 }" (%d)
  %s = tfrt_dist.register_tf_function(%p, %m, %task) "made" "whatever"
  %sc = tfrt.merge.chains %p, %s : !tfrt.chain, !tfrt_dist.remote_execute_spec
  %r = tfrt_dist.register_tfrt_function(%sc, %m, %task) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %s] "made" () : () -> (!tfrt_dist.remote_object_id)
  %c, %x = tfrt_dist.remote_execute[%r, %m, %task, %spec] "show" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: int32 = 8

// CHECK-LABEL: --- Running 'unknown_device_of_a_pass':
func.func @unknown_device_of_a_pass() -> !tfrt_dist.remote_execute_spec {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %d = tfrt_test.get_string {value = "GPU:9"}
  %p = tfrt_dist.test_register_fake_compiler_pass "tfrt" "func.func @made() -> i32 { %a = tfrt.constant.i32 8 tfrt.return %a : i32 }" (%d)
  %s = tfrt_dist.register_tf_function(%p, %m, %task) "made" "whatever"
  tfrt.return %s : !tfrt_dist.remote_execute_spec
}
// CHECK-NEXT: 'unknown_device_of_a_pass' returned <<error: Can't find device: GPU:9, code: DeviceNotFound>>

// CHECK-LABEL: --- Running 'failing_pass':
func.func @failing_pass() -> !tfrt_dist.remote_execute_spec {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %p = tfrt_dist.test_register_fake_compiler_pass "tfrt" "" ()
  %s = tfrt_dist.register_tf_function(%p, %m, %task) "made" "whatever"
  tfrt.return %s : !tfrt_dist.remote_execute_spec
}
// CHECK-NEXT: 'failing_pass' returned <<error: /job:worker/task:1: Failed compiling program:made: the fake pass has no program, code: CompilationFailed>>
