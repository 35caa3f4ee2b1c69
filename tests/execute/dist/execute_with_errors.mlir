// RUN: run --print-error-code --queue single
// EXIT: 3

// Mistakes in calls of other tasks: each is told, with the task that has found it.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'unknown_program':
func.func @unknown_program() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%ch, %m, %task, %spec] "nope" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'unknown_program' returned <<error: /job:worker/task:1: Can't find program: [nope], code: NotFound>>

// CHECK-LABEL: --- Running 'registered_twice':
func.func @registered_twice() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %c = tfrt_dist.register_tfrt_function(%r0, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'registered_twice' returned <<error: /job:worker/task:1: Program make already registered., code: RemoteFunctionAlreadyExists>>

// CHECK-LABEL: --- Running 'no_function':
func.func @no_function() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %c = tfrt_dist.register_tfrt_function(%ch, %m, %task) "other" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'no_function' returned <<error: /job:worker/task:1: the program has no function 'other' to register, code: NotFound>>

// CHECK-LABEL: --- Running 'no_program':
func.func @no_program() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %c = tfrt_dist.register_tfrt_function(%ch, %m, %task) "bad" "func.func @bad( {"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'no_program' returned <<error: /job:worker/task:1: Failed parsing program:bad: {{.*}}, code: MalformattedMlirFile>>

// CHECK-LABEL: --- Running 'cannot_travel':
func.func @cannot_travel() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %c = tfrt_dist.register_tfrt_function(%ch, %m, %task) "f" "func.func @f() -> (i32, !tfrt.device) { %a = tfrt.constant.i32 1 %c = tfrt.new.chain %d = tfrt.get_device %c {device_name = \22CPU:0\22} tfrt.return %a, %d : i32, !tfrt.device }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'cannot_travel' returned <<error: /job:worker/task:1: result 1 of `f` is a `!tfrt.device`, which cannot travel, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'files':
func.func @files() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %c = tfrt_dist.register_tfrt_function(%ch, %m, %task) "f" "func.func @f(%p: !tfrt.string) -> !tfrt.string { %a = \22tfrt_test.read_string_from_file\22(%p) : (!tfrt.string) -> !tfrt.string tfrt.return %a : !tfrt.string }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'files' returned <<error: /job:worker/task:1: Failed parsing program:f: tfrt_test.read_string_from_file looks at files, which programs of other tasks may not, code: MalformattedMlirFile>>

// CHECK-LABEL: --- Running 'too_many_results':
func.func @too_many_results() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0"]}
  %c, %a, %b = tfrt_dist.remote_execute[%r, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id, !tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'too_many_results' returned <<error: /job:worker/task:1: Result size mismatch: fn #result: 1 Received #outputs: 2, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'too_few_arguments':
func.func @too_few_arguments() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "twice" "func.func @twice(%x: i32) -> i32 { %y = tfrt.add.i32 %x, %x tfrt.return %y : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "twice" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'too_few_arguments' returned <<error: /job:worker/task:1: Argument size mismatch: fn #arg: 1 Received #inputs: 0, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'spec_misfit':
func.func @spec_misfit() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'spec_misfit' returned <<error: Mismatch output devices size in RemoteExecuteSpec: 2 expected: 1, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'unknown_device':
func.func @unknown_device() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:9/device:CPU:0"]}
  %c, %a = tfrt_dist.remote_execute[%ch, %m, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'unknown_device' returned <<error: Can't find device: /job:worker/task:9/device:CPU:0, code: DeviceNotFound>>

// CHECK-LABEL: --- Running 'unknown_job':
func.func @unknown_job() -> !tfrt_dist.task_handle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %t = tfrt_dist.get_task_handle %m {task_name = "/job:ps/task:0"}
  tfrt.return %t : !tfrt_dist.task_handle
}
// CHECK-NEXT: 'unknown_job' returned <<error: Failed to get TaskHandle for job_name=ps, task_id=0: the job ps does not exist., code: TaskNotFound>>

// CHECK-LABEL: --- Running 'unknown_task':
func.func @unknown_task() -> !tfrt_dist.task_handle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %t = tfrt_dist.get_task_handle %m {task_name = "/job:worker/task:2"}
  tfrt.return %t : !tfrt_dist.task_handle
}
// CHECK-NEXT: 'unknown_task' returned <<error: Failed to get TaskHandle for job_name=worker, task_id=2: the task 2 does not exist., code: TaskNotFound>>

// CHECK-LABEL: --- Running 'no_task_name':
func.func @no_task_name() -> !tfrt_dist.task_handle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %t = tfrt_dist.get_task_handle %m {task_name = "/job:worker/task:01"}
  tfrt.return %t : !tfrt_dist.task_handle
}
// CHECK-NEXT: 'no_task_name' returned <<error: Error parsing task name "/job:worker/task:01": {{.*}}, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'task_of_another':
func.func @task_of_another() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %t = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:1"}
  %c = tfrt_dist.register_tfrt_function(%ch, %m, %t) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: 'task_of_another' returned <<error: No task found with TaskHandle task_handle[{{[0-9]+}}], code: TaskNotFound>>

// CHECK-LABEL: --- Running 'no_context':
func.func @no_context() -> !tfrt_dist.dist_context {
  %t = tfrt_dist.get_distributed_context
  tfrt.return %t : !tfrt_dist.dist_context
}
// CHECK-NEXT: 'no_context' returned <<error: there is no distributed context: the request was not made by another task, nor given one, code: NotFound>>
