// RUN: run --print-error-code --queue single
// EXIT: 3

// Handles to tensors of another task: type and shape are told, the tensor stays there.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'handle':
func.func @handle() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %s = "corert.tensorhandle_to_shape"(%h, %ch) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape
  %p = ts.print_shape %s, %c
  tfrt.return %p : !tfrt.chain
}
// CHECK-NEXT: shape = [2, 3]

// CHECK-LABEL: --- Running 'last_of_two':
func.func @last_of_two() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "two" "func.func @two() -> (i32, !t.tensor) { %n = tfrt.constant.i32 1 %c = tfrt.new.chain %a = tfrt_dht.create_uninitialized_tensor.f32.2 [4 : i64, 1 : i64] tfrt.return %n, %a : i32, !t.tensor }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0"]}
  %c, %a, %b, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "two" () : () -> (!tfrt_dist.remote_object_id, !tfrt_dist.remote_object_id, !corert.tensorhandle)
  %s = "corert.tensorhandle_to_shape"(%h, %ch) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape
  %p = ts.print_shape %s, %c
  tfrt.return %p : !tfrt.chain
}
// CHECK-NEXT: shape = [4, 1]

// CHECK-LABEL: --- Running 'printed':
func.func @printed() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %p = "corert.print_tensorhandle"(%h, %c) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %p : !tfrt.chain
}
// CHECK-NEXT: RemoteTensor : RemoteObjectId{prefix_id: {{[0-9]+}} local_id: 2 device: /job:worker/task:1/device:CPU:0} dtype = i32, shape = [2, 3]

// CHECK-LABEL: --- Running 'id_of_handle':
func.func @id_of_handle() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "sum" "func.func @sum(%a: !corert.tensorhandle) -> !tfrt.chain { %c = tfrt.new.chain %d = \22corert.print_tensorhandle\22(%a, %c) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %i = "tfrt_dist.get_remote_object_id_from_th"(%h) : (!corert.tensorhandle) -> !tfrt_dist.remote_object_id
  %c, %x = tfrt_dist.remote_execute[%c0, %m, %task, %spec] "sum" (%i) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 3], values = [1, 1, 1, 1, 1, 1]

// CHECK-LABEL: --- Running 'no_remote_handle':
func.func @no_remote_handle() -> !tfrt_dist.remote_object_id {
  %a = corert.const_dense_tensor dense<1> : tensor<2xi32>
  %i = "tfrt_dist.get_remote_object_id_from_th"(%a) : (!corert.tensorhandle) -> !tfrt_dist.remote_object_id
  tfrt.return %i : !tfrt_dist.remote_object_id
}
// CHECK-NEXT: 'no_remote_handle' returned <<error: TensorHandle is not a RemoteTensor, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'no_tensor':
func.func @no_tensor() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "make" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  tfrt.return %h : !corert.tensorhandle
}
// CHECK-NEXT: 'no_tensor' returned <<error: /job:worker/task:1: Invalid type i32, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'preallocated':
func.func @preallocated() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %m, %task) "pre" "func.func @pre(%ctx: !tfrt_dist.dist_context, %out: !tfrt_dist.remote_object_id) -> !corert.tensorhandle { %c = tfrt.new.chain %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:1\22} %s = tfrt_dist.create_remote_execute_spec %ctx {output_devices = [\22/job:worker/task:1/device:CPU:0\22]} %d, %h = tfrt_dist.remote_execute_th_preallocated[%c, %ctx, %t, %s, 0, 1] \22ones\22 (%out) : (!tfrt_dist.remote_object_id) -> (!corert.tensorhandle) tfrt.return %h : !corert.tensorhandle }"
  %r = tfrt_dist.register_tfrt_function(%r1, %m, %task) "sum" "func.func @sum(%a: !corert.tensorhandle) -> !tfrt.chain { %c = tfrt.new.chain %d = \22corert.print_tensorhandle\22(%a, %c) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "pre" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %c, %x = tfrt_dist.remote_execute[%r, %m, %task, %spec] "sum" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 3], values = [1, 1, 1, 1, 1, 1]

// CHECK-LABEL: --- Running 'preallocated_misfit':
func.func @preallocated_misfit() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %two = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r, %m, %task, %spec] "ones" () : () -> (!tfrt_dist.remote_object_id)
  %c, %h = tfrt_dist.remote_execute_th_preallocated[%c0, %m, %task, %two, 0, 1] "ones" (%a) : (!tfrt_dist.remote_object_id) -> (!corert.tensorhandle)
  tfrt.return %h : !corert.tensorhandle
}
// CHECK-NEXT: 'preallocated_misfit' returned <<error: Mismatch output devices size in RemoteExecuteSpec: 2 expected: 1, code: InvalidArgument>>
