// RUN: run --gpu-driver sim
//
// Two devices exchange data: each function is one of two ranks.

func.func @rank(%rank: i32, %peer: i32, %count: i32, %id: !tfrt_gpu.ccl.id, %in: !t.tensor, %out: !t.tensor, %all: !t.tensor, %c0: !tfrt.chain) -> !tfrt.chain {
  %device = tfrt_gpu.device.get CUDA, %rank
  %context = tfrt_gpu.context.primary %device
  %stream = tfrt_gpu.stream.create %context
  %h_in, %c1 = tfrt_dht.get_buffer %in, %c0
  %h_out, %c2 = tfrt_dht.get_buffer %out, %c1
  %h_all, %c3 = tfrt_dht.get_buffer %all, %c2
  %from = tfrt_gpu.mem.register %context, %h_in
  %to = tfrt_gpu.mem.register %context, %h_out
  %both = tfrt_gpu.mem.register %context, %h_all
  %ccl = tfrt_gpu.ccl.create %context, %rank, %count, %id
  // What one sends is what the other has not yet reduced.
  %c4 = tfrt_gpu.ccl.send %ccl, %from, %peer, ncclInt32, %c3
  %c5 = tfrt_gpu.ccl.recv %ccl, %to, %peer, ncclInt32, %c4
  %c6 = tfrt_gpu.ccl.all_gather %ccl, %from, %both, ncclInt32, %c5
  %c7 = tfrt_gpu.ccl.execute %stream, %ccl, %c6
  %c8 = tfrt_gpu.stream.synchronize %stream, %c7
  tfrt.return %c8 : !tfrt.chain
}

func.func @again(%rank: i32, %count: i32, %id: !tfrt_gpu.ccl.id, %in: !t.tensor, %out: !t.tensor, %part: !t.tensor, %c0: !tfrt.chain) -> !tfrt.chain {
  %device = tfrt_gpu.device.get CUDA, %rank
  %context = tfrt_gpu.context.primary %device
  %stream = tfrt_gpu.stream.create %context
  %h_in, %c1 = tfrt_dht.get_buffer %in, %c0
  %h_out, %c2 = tfrt_dht.get_buffer %out, %c1
  %h_part, %c3 = tfrt_dht.get_buffer %part, %c2
  %from = tfrt_gpu.mem.register %context, %h_in
  %to = tfrt_gpu.mem.register %context, %h_out
  %small = tfrt_gpu.mem.register %context, %h_part
  %ccl = tfrt_gpu.ccl.create %context, %rank, %count, %id
  %c4 = tfrt_gpu.ccl.all_to_all %ccl, %from, %to, ncclInt32, %c3
  %c5 = tfrt_gpu.ccl.reduce_scatter %ccl, %from, %small, ncclInt32, ncclSum, %c4
  %c6 = tfrt_gpu.ccl.all_reduce %ccl, %from, %from, ncclInt32, ncclMax, %c5
  %c7 = tfrt_gpu.ccl.execute %stream, %ccl, %c6
  %c8 = tfrt_gpu.stream.synchronize %stream, %c7
  tfrt.return %c8 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'ranks'
func.func @ranks() {
  %zero = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %id = tfrt_gpu.ccl.unique_id CUDA
  %c0 = tfrt.new.chain
  %in0 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %out0 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %all0 = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
  %in1 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %out1 = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %all1 = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.i32 %in0, %c0 [1 : i32, 20 : i32]
  %c2 = tfrt_dht.set_tensor_with_constant_values.i32 %in1, %c1 [10 : i32, 2 : i32]
  %d0 = tfrt.call @rank(%zero, %one, %two, %id, %in0, %out0, %all0, %c2) : (i32, i32, i32, !tfrt_gpu.ccl.id, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %d1 = tfrt.call @rank(%one, %zero, %two, %id, %in1, %out1, %all1, %c2) : (i32, i32, i32, !tfrt_gpu.ccl.id, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %c3 = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
  // CHECK: values = [10, 2]
  %c4 = tfrt_dht.print_tensor %out0, %c3
  // CHECK: values = [1, 20]
  %c5 = tfrt_dht.print_tensor %out1, %c4
  // CHECK: values = [1, 20, 10, 2]
  %c6 = tfrt_dht.print_tensor %all0, %c5
  // CHECK: values = [1, 20, 10, 2]
  %c7 = tfrt_dht.print_tensor %all1, %c6
  %id2 = tfrt_gpu.ccl.unique_id CUDA
  %part0 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %part1 = tfrt_dht.create_uninitialized_tensor.i32.1 [1 : i64]
  %e0 = tfrt.call @again(%zero, %two, %id2, %in0, %out0, %part0, %c7) : (i32, i32, !tfrt_gpu.ccl.id, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %e1 = tfrt.call @again(%one, %two, %id2, %in1, %out1, %part1, %c7) : (i32, i32, !tfrt_gpu.ccl.id, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %c8 = tfrt.merge.chains %e0, %e1 : !tfrt.chain, !tfrt.chain
  // CHECK: values = [1, 10]
  %c9 = tfrt_dht.print_tensor %out0, %c8
  // CHECK: values = [20, 2]
  %c10 = tfrt_dht.print_tensor %out1, %c9
  // CHECK: values = [11]
  %c11 = tfrt_dht.print_tensor %part0, %c10
  // CHECK: values = [22]
  %c12 = tfrt_dht.print_tensor %part1, %c11
  // CHECK: values = [10, 20]
  %c13 = tfrt_dht.print_tensor %in1, %c12
  tfrt.return
}
