// RUN: run

// Values that are sent: each meets whoever asks for its key, in the order in which both come.

func.func @two_tasks(%ch: !tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle) {
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  tfrt.return %ctx#0, %ctx#1, %task : !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle
}

// CHECK-LABEL: --- Running 'tensor_i32':
func.func @tensor_i32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %f = tfrt_dht.fill_tensor_with_constant.i32 %t, %ch 7 : i32
  %payload = tfrt_dist.serialize %t, %f
  %sent = tfrt_dist.send_bytes %m, %task, %key, %payload
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %sent
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [7, 7]

// CHECK-LABEL: --- Running 'tensor_f32':
func.func @tensor_f32() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %f = tfrt_dht.fill_tensor_with_constant.f32 %t, %ch 1.5 : f32
  %payload = tfrt_dist.serialize %t, %f
  %sent = tfrt_dist.send_bytes %m, %task, %key, %payload
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %sent
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [1.500000e+00, 1.500000e+00]

// CHECK-LABEL: --- Running 'tensor_i64':
func.func @tensor_i64() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t = tfrt_dht.create_uninitialized_tensor.i64.1 [2 : i64]
  %f = tfrt_dht.fill_tensor_with_constant.i64 %t, %ch -1 : i64
  %payload = tfrt_dist.serialize %t, %f
  %sent = tfrt_dist.send_bytes %m, %task, %key, %payload
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %sent
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i64, shape = [2], values = [-1, -1]

// CHECK-LABEL: --- Running 'tensor_f64':
func.func @tensor_f64() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t = "tfrt_dht.create_uninitialized_tensor.f64.1"() {shape = [2 : i64]} : () -> !t.tensor
  %f = "tfrt_dht.fill_tensor_with_constant.f64"(%t, %ch) {value = 0.5 : f64} : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  %payload = tfrt_dist.serialize %t, %f
  %sent = tfrt_dist.send_bytes %m, %task, %key, %payload
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %sent
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = f64, shape = [2], values = [5.000000e-01, 5.000000e-01]

// CHECK-LABEL: --- Running 'tensor_i8':
func.func @tensor_i8() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t = "tfrt_dht.create_uninitialized_tensor.i8.1"() {shape = [2 : i64]} : () -> !t.tensor
  %f = "tfrt_dht.fill_tensor_with_constant.i8"(%t, %ch) {value = 3 : i8} : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  %payload = tfrt_dist.serialize %t, %f
  %sent = tfrt_dist.send_bytes %m, %task, %key, %payload
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %sent
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i8, shape = [2], values = [3, 3]

// CHECK-LABEL: --- Running 'tensor_ui8':
func.func @tensor_ui8() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t = "tfrt_dht.create_uninitialized_tensor.ui8.1"() {shape = [2 : i64]} : () -> !t.tensor
  %f = "tfrt_dht.fill_tensor_with_constant.ui8"(%t, %ch) {value = 3 : ui8} : (!t.tensor, !tfrt.chain) -> !tfrt.chain
  %payload = tfrt_dist.serialize %t, %f
  %sent = tfrt_dist.send_bytes %m, %task, %key, %payload
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %sent
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = u8, shape = [2], values = [3, 3]

// CHECK-LABEL: --- Running 'receiver_first':
func.func @receiver_first() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %other = tfrt_test.get_string {value = "l"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t1 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f1 = tfrt_dht.fill_tensor_with_constant.i32 %t1, %ch 1 : i32
  %p1 = tfrt_dist.serialize %t1, %f1
  %t2 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f2 = tfrt_dht.fill_tensor_with_constant.i32 %t2, %ch 2 : i32
  %p2 = tfrt_dist.serialize %t2, %f2
  %got = tfrt_dist.recv_bytes %w, %lead, %key
  %s = tfrt_dist.send_bytes %m, %task, %key, %p1
  %u = tfrt_dist.deserialize %got
  %c = tfrt_dht.print_tensor %u, %s
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [1]

// CHECK-LABEL: --- Running 'two_keys':
func.func @two_keys() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %other = tfrt_test.get_string {value = "l"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t1 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f1 = tfrt_dht.fill_tensor_with_constant.i32 %t1, %ch 1 : i32
  %p1 = tfrt_dist.serialize %t1, %f1
  %t2 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f2 = tfrt_dht.fill_tensor_with_constant.i32 %t2, %ch 2 : i32
  %p2 = tfrt_dist.serialize %t2, %f2
  %s = tfrt_dist.send_bytes %m, %task, %key, %p1
  %s2 = tfrt_dist.send_bytes %m, %task, %other, %p2
  %g2 = tfrt_dist.recv_bytes %w, %lead, %other
  %g1 = tfrt_dist.recv_bytes %w, %lead, %key
  %u1 = tfrt_dist.deserialize %g1
  %u2 = tfrt_dist.deserialize %g2
  %c1 = tfrt_dht.print_tensor %u1, %s
  %c2 = tfrt.merge.chains %c1, %s2 : !tfrt.chain, !tfrt.chain
  %c = tfrt_dht.print_tensor %u2, %c2
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [1]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [2]

// CHECK-LABEL: --- Running 'one_is_left_over':
func.func @one_is_left_over() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %other = tfrt_test.get_string {value = "l"}
  %lead = tfrt_dist.get_task_handle %w {task_name = "/job:worker/task:0"}
  %t1 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f1 = tfrt_dht.fill_tensor_with_constant.i32 %t1, %ch 1 : i32
  %p1 = tfrt_dist.serialize %t1, %f1
  %t2 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f2 = tfrt_dht.fill_tensor_with_constant.i32 %t2, %ch 2 : i32
  %p2 = tfrt_dist.serialize %t2, %f2
  %s = tfrt_dist.send_bytes %m, %task, %key, %p1
  %f = tfrt_dist.serialize %t2, %s
  %s2 = tfrt_dist.send_bytes %m, %task, %key, %f
  %g = tfrt_dist.recv_bytes %w, %lead, %key
  %u = tfrt_dist.deserialize %g
  %c = tfrt_dht.print_tensor %u, %s2
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [1]

// CHECK-LABEL: --- Running 'to_itself':
func.func @to_itself() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %m, %w, %task = tfrt.call @two_tasks(%ch) : (!tfrt.chain) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.task_handle)
  %key = tfrt_test.get_string {value = "k"}
  %t1 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %f1 = tfrt_dht.fill_tensor_with_constant.i32 %t1, %ch 9 : i32
  %p1 = tfrt_dist.serialize %t1, %f1
  %own = tfrt_dist.get_task_handle %m {task_name = "/job:worker/task:0"}
  %s = tfrt_dist.send_bytes %m, %own, %key, %p1
  %g = tfrt_dist.recv_bytes %m, %own, %key
  %u = tfrt_dist.deserialize %g
  %c = tfrt_dht.print_tensor %u, %s
  tfrt.return %c : !tfrt.chain
}
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [9]
