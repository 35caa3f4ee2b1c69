// RUN: run --gpu-driver sim
//
// Pooling and convolutions of `tfrt_gpu`, and their gradients.

func.func @shown(%stream: !tfrt_gpu.stream, %b: !tfrt_gpu.buffer, %t: !t.tensor, %c0: !tfrt.chain) -> !tfrt.chain {
  %h, %c1 = tfrt_dht.get_buffer %t, %c0
  %c2 = tfrt_gpu.mem.copy %h, %b, %stream, %c1 : !ht.host_buffer, !tfrt_gpu.buffer
  %c3 = tfrt_dht.print_tensor %t, %c2
  tfrt.return %c3 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'networks'
func.func @networks() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %dnn = tfrt_gpu.dnn.create %context
  %c0 = tfrt.new.chain
  // An image of 3x3, a filter of 2x2, a result of 2x2.
  %t9 = tfrt_dht.create_uninitialized_tensor.f32.1 [9 : i64]
  %t4 = tfrt_dht.create_uninitialized_tensor.f32.1 [4 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %t9, %c0 [1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32, 5.0 : f32, 6.0 : f32, 7.0 : f32, 8.0 : f32, 9.0 : f32]
  %c2 = tfrt_dht.set_tensor_with_constant_values.f32 %t4, %c1 [1.0 : f32, 0.0 : f32, 0.0 : f32, 2.0 : f32]
  %n36 = tfrt.constant.i64 36
  %n16 = tfrt.constant.i64 16
  %x = tfrt_gpu.mem.allocate %allocator, %stream, %n36, %c2
  %w = tfrt_gpu.mem.allocate %allocator, %stream, %n16, %c2
  %y = tfrt_gpu.mem.allocate %allocator, %stream, %n16, %c2
  %h9, %c3 = tfrt_dht.get_buffer %t9, %c2
  %h4, %c4 = tfrt_dht.get_buffer %t4, %c3
  %c5 = tfrt_gpu.mem.copy %x, %h9, %stream, %c4 : !tfrt_gpu.buffer, !ht.host_buffer
  %c6 = tfrt_gpu.mem.copy %w, %h4, %stream, %c5 : !tfrt_gpu.buffer, !ht.host_buffer
  %x_desc = tfrt_gpu.dnn.create_tensor_descriptor CUDNN_DATA_FLOAT, [1 : i32, 1 : i32, 3 : i32, 3 : i32], [9 : i32, 9 : i32, 3 : i32, 1 : i32]
  %y_desc = tfrt_gpu.dnn.create_tensor_descriptor CUDNN_DATA_FLOAT, [1 : i32, 1 : i32, 2 : i32, 2 : i32], [4 : i32, 4 : i32, 2 : i32, 1 : i32]
  %w_desc = tfrt_gpu.dnn.create_filter_descriptor CUDNN_DATA_FLOAT, 0, [1 : i32, 1 : i32, 2 : i32, 2 : i32]
  %conv = tfrt_gpu.dnn.create_convolution_descriptor CUDNN_DATA_FLOAT, CUDNN_CROSS_CORRELATION, CUDNN_FMA_MATH, [0 : i32, 0 : i32], [1 : i32, 1 : i32], [1 : i32, 1 : i32]
  %turned = tfrt_gpu.dnn.create_convolution_descriptor CUDNN_DATA_FLOAT, CUDNN_CONVOLUTION, CUDNN_FMA_MATH, [0 : i32, 0 : i32], [1 : i32, 1 : i32], [1 : i32, 1 : i32]
  %forward = tfrt_gpu.dnn.convolution_forward_algorithm CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM
  %c7 = tfrt_gpu.dnn.convolution_forward %dnn, %stream, CUDNN_DATA_FLOAT, %x_desc, %x, %w_desc, %w, %conv, %forward, %w, %y_desc, %y, %c6
  // 1*1+5*2, 2*1+6*2, 4*1+8*2, 5*1+9*2
  // CHECK: values = [1.100000e+01, 1.400000e+01, 2.000000e+01, 2.300000e+01]
  %c8 = tfrt.call @shown(%stream, %y, %t4, %c7) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %c9 = tfrt_gpu.dnn.convolution_forward %dnn, %stream, CUDNN_DATA_FLOAT, %x_desc, %x, %w_desc, %w, %turned, %forward, %w, %y_desc, %y, %c8
  // CHECK: values = [7.000000e+00, 1.000000e+01, 1.600000e+01, 1.900000e+01]
  %c10 = tfrt.call @shown(%stream, %y, %t4, %c9) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %plan = tfrt_gpu.dnn.build_convolution %dnn, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, [1, 1, 3, 3], [9, 9, 3, 1], [1, 1, 2, 2], [4, 4, 2, 1], [1, 1, 2, 2], [4, 4, 2, 1], CUDNN_CROSS_CORRELATION, 2, [1, 1], [0, 0], [1, 1], 10, 0, [], []
  %c11 = tfrt_gpu.dnn.run_convolution %dnn, %stream, %plan, %x, %y, %w, %w, %c10
  // CHECK: values = [1.100000e+01, 1.400000e+01, 2.000000e+01, 2.300000e+01]
  %c12 = tfrt.call @shown(%stream, %y, %t4, %c11) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %one = tfrt.constant.f32 1.0
  %none = tfrt.constant.f32 0.0
  %c13 = tfrt_gpu.mem.set %y, %one, %stream, %c12 : f32
  %data = tfrt_gpu.dnn.convolution_backward_data_algorithm CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
  %dx = tfrt_gpu.mem.allocate %allocator, %stream, %n36, %c13
  %c14 = tfrt_gpu.dnn.convolution_backward_data %dnn, %stream, CUDNN_DATA_FLOAT, %w_desc, %w, %y_desc, %y, %conv, %data, %w, %x_desc, %dx, %c13
  // CHECK: values = [1.000000e+00, 1.000000e+00, 0.000000e+00, 1.000000e+00, 3.000000e+00, 2.000000e+00, 0.000000e+00, 2.000000e+00, 2.000000e+00]
  %c15 = tfrt.call @shown(%stream, %dx, %t9, %c14) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %filter = tfrt_gpu.dnn.convolution_backward_filter_algorithm CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1
  %c16 = tfrt_gpu.dnn.convolution_backward_filter %dnn, %stream, CUDNN_DATA_FLOAT, %x_desc, %x, %y_desc, %y, %conv, %filter, %x, %w_desc, %w, %c15
  // Sums of windows: 1+2+4+5 and so on.
  // CHECK: values = [1.200000e+01, 1.600000e+01, 2.400000e+01, 2.800000e+01]
  %c17 = tfrt.call @shown(%stream, %w, %t4, %c16) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)

  %max = tfrt.constant.ui32 0
  %mean = tfrt.constant.ui32 2
  %largest = tfrt_gpu.dnn.create_pooling_descriptor %context, %max, %max, [2 : i32, 2 : i32], [0 : i32, 0 : i32], [1 : i32, 1 : i32]
  %c18 = tfrt_gpu.dnn.pooling_forward %dnn, %stream, %largest, %one, %x_desc, %x, %none, %y_desc, %y, %c17
  // CHECK: values = [5.000000e+00, 6.000000e+00, 8.000000e+00, 9.000000e+00]
  %c19 = tfrt.call @shown(%stream, %y, %t4, %c18) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %c20 = tfrt_gpu.dnn.pooling_backward %dnn, %stream, %largest, %one, %y_desc, %y, %y_desc, %y, %x_desc, %x, %none, %x_desc, %dx, %c19
  // CHECK: values = [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 5.000000e+00, 6.000000e+00, 0.000000e+00, 8.000000e+00, 9.000000e+00]
  %c21 = tfrt.call @shown(%stream, %dx, %t9, %c20) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  %middle = tfrt_gpu.dnn.create_pooling_descriptor %context, %mean, %max, [2 : i32, 2 : i32], [0 : i32, 0 : i32], [1 : i32, 1 : i32]
  %c22 = tfrt_gpu.dnn.pooling_forward %dnn, %stream, %middle, %one, %x_desc, %x, %one, %y_desc, %y, %c21
  // Means, added to what was there.
  // CHECK: values = [8.000000e+00, 1.000000e+01, 1.400000e+01, 1.600000e+01]
  %c23 = tfrt.call @shown(%stream, %y, %t4, %c22) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !t.tensor, !tfrt.chain) -> (!tfrt.chain)
  tfrt.return
}
