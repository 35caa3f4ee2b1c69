// RUN: run --gpu-driver sim
//
// Streams, events, buffers and tensors of `tfrt_cuda`.

// CHECK-LABEL: --- Running 'objects'
func.func @objects() {
  %c0 = tfrt.new.chain
  %c1 = tfrt_cuda.init %c0
  %zero = tfrt.constant.i32 0
  %device, %c2 = tfrt_cuda.device.get %zero, %c1
  %context, %c3 = tfrt_cuda_test.context.get %device, %c2
  %allocator, %c4 = tfrt_cuda.allocator.create %context, %c3
  %stream, %c5 = tfrt_cuda.stream.create %context, %c4
  %size = tfrt.constant.i64 32
  %buffer, %c6 = tfrt_cuda.mem.allocate %allocator, %stream, %size, %c5
  // CHECK: GpuBuffer<pointer={{0x[0-9a-f]+}} (CUDA), size=32>
  %c7 = tfrt_cuda.mem.print_metadata %buffer, %c6
  %shape = ts.build_shape [2 : i64, 2 : i64]
  %tensor, %c8 = tfrt_cuda.tensor.make.i64 %buffer, %shape, %c7
  // CHECK: DenseGpuTensor<dtype=I64, shape=[2, 2], pointer={{0x[0-9a-f]+}} (CUDA)>
  %c9 = tfrt_cuda.tensor.print_metadata %tensor, %c8
  %event = tfrt_cuda.event.create %context
  %c10 = tfrt_cuda.event.record %event, %stream, %c9
  %c11 = tfrt_cuda.event.poll %event, %c10
  // CHECK: shape = [2, 2], values = [7, 7, 7, 7]
  %from = tfrt_dht.create_uninitialized_tensor.i64.2 [2 : i64, 2 : i64]
  %c12 = tfrt_dht.fill_tensor_with_constant.i64 %from, %c11 7 : i64
  %copied, %c13 = tfrt_cuda_test.copy_tensor_host_to_device %context, %allocator, %stream, %from, %c12
  // The host's bytes were read when the copy was queued.
  %c14 = tfrt_dht.fill_tensor_with_constant.i64 %from, %c13 0 : i64
  %to, %c15 = tfrt_dht.get_buffer %from, %c14
  %c16 = tfrt_cuda.mem.copy_device_to_host %context, %to, %copied, %size, %stream, %c15
  %c17 = tfrt_dht.print_tensor %from, %c16
  tfrt.return
}
