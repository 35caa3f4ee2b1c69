// RUN: run --gpu-driver sim
//
// Buffers, parts of them, fills, copies and tensors of `tfrt_gpu`.

// CHECK-LABEL: --- Running 'memory'
func.func @memory() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %same = tfrt_gpu.stream.get_context %stream
  %allocator = tfrt_gpu.allocator.create %same
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 16
  %b = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
  // CHECK: GpuBuffer<pointer={{0x[0-9a-f]+}} (CUDA), size=16>
  %c1 = tfrt_gpu.mem.print_metadata %b, %c0
  %n = tfrt.constant.i32 3
  %c2 = tfrt_gpu.mem.set %b, %n, %stream, %c1 : i32
  %at = tfrt.constant.ui64 8
  %four = tfrt.constant.ui64 4
  %part = tfrt_gpu.mem.view %b, %at, %four
  // CHECK: GpuBuffer<pointer={{0x[0-9a-f]+8}} (CUDA), size=4>
  %c3 = tfrt_gpu.mem.print_metadata %part, %c2
  %m = tfrt.constant.i32 9
  %c4 = tfrt_gpu.mem.set %part, %m, %stream, %c3 : i32
  %other = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c4
  %c5 = tfrt_gpu.mem.copy %other, %b, %stream, %c4 : !tfrt_gpu.buffer, !tfrt_gpu.buffer
  %c6 = tfrt_gpu.mem.deallocate %b, %stream, %c5
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
  %h, %c7 = tfrt_dht.get_buffer %t, %c6
  %c8 = tfrt_gpu.mem.copy %h, %other, %stream, %c7 : !ht.host_buffer, !tfrt_gpu.buffer
  // CHECK: shape = [4], values = [3, 3, 9, 3]
  %c9 = tfrt_dht.print_tensor %t, %c8
  %shape = ts.build_shape [2 : i64, 2 : i64]
  %tensor = tfrt_gpu.tensor.make.i32 %other, %shape, %c9
  // CHECK: DenseGpuTensor<dtype=i32, shape=[2, 2], pointer={{0x[0-9a-f]+}} (CUDA)>
  %c10 = tfrt_gpu.tensor.print_metadata %tensor, %c9
  %later = tfrt_gpu.alias %tensor, %c10 : !t.tensor
  // CHECK: DenseGpuTensor<dtype=i32
  %c11 = tfrt_gpu.tensor.print_metadata %later, %c10
  tfrt.return
}
