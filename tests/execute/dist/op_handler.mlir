// RUN: run --print-error-code --queue single
// EXIT: 3

// Operations by name on a device of another task.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'add':
func.func @add() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "sum" "func.func @sum(%a: !corert.tensorhandle) -> !tfrt.chain { %c = tfrt.new.chain %d = \22corert.print_tensorhandle\22(%a, %c) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %b = corert.executeop(%handler) "tf.AddV2"(%h, %h) : 1
  %i = "tfrt_dist.get_remote_object_id_from_th"(%b) : (!corert.tensorhandle) -> !tfrt_dist.remote_object_id
  %c, %x = tfrt_dist.remote_execute[%c0, %m, %task, %spec] "sum" (%i) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 3], values = [2, 2, 2, 2, 2, 2]

// CHECK-LABEL: --- Running 'two_in_a_row':
func.func @two_in_a_row() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "sum" "func.func @sum(%a: !corert.tensorhandle) -> !tfrt.chain { %c = tfrt.new.chain %d = \22corert.print_tensorhandle\22(%a, %c) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %b = corert.executeop(%handler) "tf.AddV2"(%h, %h) : 1
  %e = corert.executeop(%handler) "tf.AddV2"(%b, %h) : 1
  %i = "tfrt_dist.get_remote_object_id_from_th"(%e) : (!corert.tensorhandle) -> !tfrt_dist.remote_object_id
  %c, %x = tfrt_dist.remote_execute[%c0, %m, %task, %spec] "sum" (%i) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 3], values = [3, 3, 3, 3, 3, 3]

// CHECK-LABEL: --- Running 'in_order':
func.func @in_order() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %d, %b = corert.executeop.seq(%handler, %c0) "tf.AddV2"(%h, %h) : 1
  tfrt.return %d : !tfrt.chain
}

// CHECK-LABEL: --- Running 'wrong_attribute':
func.func @wrong_attribute() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %b = corert.executeop(%handler) "tf.AddV2"(%h, %h) {a = 1.0 : f32} : 1
  tfrt.return %b : !corert.tensorhandle
}
// CHECK-NEXT: 'wrong_attribute' returned <<error: unexpected attribute type for RemoteOpHandler, only I64 supported, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'unknown_op':
func.func @unknown_op() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %b = corert.executeop(%handler) "tf.Nope"(%h, %h) : 1
  tfrt.return %b : !corert.tensorhandle
}
// CHECK-NEXT: 'unknown_op' returned <<error: /job:worker/task:1: {{.*}}, code: NotFound>>

// CHECK-LABEL: --- Running 'result_count':
func.func @result_count() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r = tfrt_dist.register_tfrt_function(%ch, %m, %task) "ones" "func.func @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2x3xi32> tfrt.return %a : !corert.tensorhandle }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "ones" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %b, %b2 = corert.executeop(%handler) "tf.AddV2"(%h, %h) : 2
  tfrt.return %b : !corert.tensorhandle
}
// CHECK-NEXT: 'result_count' returned <<error: /job:worker/task:1: {{.*}}>>

// CHECK-LABEL: --- Running 'tensor_of_this_task':
func.func @tensor_of_this_task() -> !corert.tensorhandle {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %a = corert.const_dense_tensor dense<1> : tensor<2xi32>
  %b = corert.executeop(%handler) "tf.AddV2"(%a, %a) : 1
  tfrt.return %b : !corert.tensorhandle
}
// CHECK-NEXT: 'tensor_of_this_task' returned <<error: expected a tensor of another task as an operand of a remote operation, found one of i32 [2] here, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'integer_attributes':
func.func @integer_attributes() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %chains = tfrt_dist.test_create_remote_chain_manager %m
  %device = tfrt_dist.test_get_remote_device %m {device_name = "/job:worker/task:1/device:CPU:0"}
  %handler = tfrt_dist.create_remote_op_handler %m, %chains, %device
  %r0 = tfrt_dist.register_tfrt_function(%ch, %m, %task) "rows" "func.func @rows() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<[[1.0], [2.0]]> : tensor<2x1xf32> tfrt.return %a : !corert.tensorhandle }"
  %r = tfrt_dist.register_tfrt_function(%r0, %m, %task) "sum" "func.func @sum(%a: !corert.tensorhandle) -> !tfrt.chain { %c = tfrt.new.chain %d = \22corert.print_tensorhandle\22(%a, %c) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %m {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a, %h = tfrt_dist.remote_execute_th[%r, %m, %task, %spec, 1] "rows" () : () -> (!tfrt_dist.remote_object_id, !corert.tensorhandle)
  %b = corert.executeop(%handler) "transpose"(%h) {perm = [1, 0]} : 1
  %i = "tfrt_dist.get_remote_object_id_from_th"(%b) : (!corert.tensorhandle) -> !tfrt_dist.remote_object_id
  %c, %x = tfrt_dist.remote_execute[%c0, %m, %task, %spec] "sum" (%i) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1, 2], values = [1.000000e+00, 2.000000e+00]
