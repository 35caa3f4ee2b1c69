// RUN: run --gpu-driver sim
//
// Linear algebra of `tfrt_cuda`: a sum of vectors, products of matrices by columns, in place.

func.func @ones(%context: !tfrt_cuda.context, %allocator: !tfrt_cuda.allocator, %stream: !tfrt_cuda.stream, %c0: !tfrt.chain) -> (!tfrt_cuda.buffer, !tfrt.chain) {
  %t = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %t, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32, 5.0 : f32, 6.0 : f32]
  %b, %c2 = tfrt_cuda_test.copy_tensor_host_to_device %context, %allocator, %stream, %t, %c1
  tfrt.return %b, %c2 : !tfrt_cuda.buffer, !tfrt.chain
}

// CHECK-LABEL: --- Running 'blas'
func.func @blas() {
  %c0 = tfrt.new.chain
  %zero = tfrt.constant.i32 0
  %device, %c1 = tfrt_cuda.device.get %zero, %c0
  %context, %c2 = tfrt_cuda_test.context.get %device, %c1
  %allocator, %c3 = tfrt_cuda.allocator.create %context, %c2
  %stream, %c4 = tfrt_cuda.stream.create %context, %c3
  %blas = tfrt_cuda.blas.create %context
  %c5 = tfrt_cuda.blas.set_stream %blas, %stream, %c4
  %x, %c6 = tfrt.call @ones(%context, %allocator, %stream, %c5) : (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain) -> (!tfrt_cuda.buffer, !tfrt.chain)
  %y, %c7 = tfrt.call @ones(%context, %allocator, %stream, %c6) : (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain) -> (!tfrt_cuda.buffer, !tfrt.chain)
  %alpha = tfrt.constant.f32 2.0
  %beta = tfrt.constant.f32 1.0
  %n1 = tfrt.constant.i32 1
  %n2 = tfrt.constant.i32 2
  %n3 = tfrt.constant.i32 3
  // Every second element of each.
  %c8 = tfrt_cuda.blas.axpy.f32 %context, %blas, %n3, %alpha, %x, %n2, %y, %n2, %c7
  %t = tfrt_dht.create_uninitialized_tensor.f32.1 [6 : i64]
  %h, %c9 = tfrt_dht.get_buffer %t, %c8
  %size = tfrt.constant.i64 24
  %c10 = tfrt_cuda.mem.copy_device_to_host %context, %h, %y, %size, %stream, %c9
  // CHECK: shape = [6], values = [3.000000e+00, 2.000000e+00, 9.000000e+00, 4.000000e+00, 1.500000e+01, 6.000000e+00]
  %c11 = tfrt_dht.print_tensor %t, %c10
  // By columns x is 1 3 5 / 2 4 6: of 2 rows or transposed of 3.
  %c12 = tfrt_cuda.blas.gemm.f32 %context, %blas, %zero, %n1, %n2, %n2, %n3, %beta, %x, %n2, %x, %n2, %beta, %y, %n2, %c11
  %c13 = tfrt_cuda.mem.copy_device_to_host %context, %h, %y, %size, %stream, %c12
  // CHECK: shape = [6], values = [3.800000e+01, 4.600000e+01, 5.300000e+01, 6.000000e+01, 1.500000e+01, 6.000000e+00]
  %c14 = tfrt_dht.print_tensor %t, %c13
  %s1 = tfrt.constant.i64 2
  %s2 = tfrt.constant.i64 1
  // Three products of a column with a row of one element.
  %c15 = tfrt_cuda.blas.gemm.strided.batched.ex %context, %blas, %zero, %zero, %n2, %n1, %n1, %beta, %x, %zero, %n2, %s1, %x, %zero, %n1, %s2, %beta, %y, %zero, %n2, %s1, %n3, %zero, %zero, %c14
  %c16 = tfrt_cuda.mem.copy_device_to_host %context, %h, %y, %size, %stream, %c15
  // CHECK: shape = [6], values = [3.900000e+01, 4.800000e+01, 5.900000e+01, 6.800000e+01, 3.000000e+01, 2.400000e+01]
  %c17 = tfrt_dht.print_tensor %t, %c16
  tfrt.return
}
