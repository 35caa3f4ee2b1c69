// RUN: opt

// Launches, types of operands that may have any, and constants by their names.

// CHECK-LABEL: func.func @gpu
func.func @gpu(%n: i32, %one: ui64, %none: ui32, %c0: !tfrt.chain, %alpha: f32, %h: !ht.host_buffer) {
  // CHECK: tfrt_gpu.device.get CUDA, %arg0
  %device = tfrt_gpu.device.get CUDA, %n
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %module = tfrt_gpu.module.load %context {data = "text\00"}
  %f = tfrt_gpu.module.get_function %module {name = "f"}
  // CHECK: tfrt_gpu.mem.register
  %b = tfrt_gpu.mem.register %context, %h
  // CHECK: tfrt_gpu.function.launch %{{[0-9]+}}, %{{[0-9]+}}, blocks in (%arg1, %arg1, %arg1), threads in (%arg1, %arg1, %arg1), %arg2, %arg3, args(%arg0, %{{[0-9]+}}) : (i32, !tfrt_gpu.buffer)
  %c1 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c0, args(%n, %b) : (i32, !tfrt_gpu.buffer)
  // CHECK-NEXT: threads in (%arg1, %arg1, %arg1), %arg2, %6
  %c2 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c1
  // CHECK: tfrt_gpu.mem.copy {{.*}} : !ht.host_buffer, !tfrt_gpu.buffer
  %c3 = tfrt_gpu.mem.copy %h, %b, %stream, %c2 : !ht.host_buffer, !tfrt_gpu.buffer
  // CHECK: tfrt_gpu.mem.load {{.*}} : i1
  %again = tfrt_gpu.mem.load %b, %c3 : i1
  %blas = tfrt_gpu.blas.create %context
  // CHECK: tfrt_gpu.blas.scal {{.*}}, %arg0, %arg4, CUDA_R_32F, %{{[0-9]+}}, CUDA_R_32F, %arg0, CUDA_R_32F, %
  %c4 = tfrt_gpu.blas.scal %blas, %stream, %n, %alpha, CUDA_R_32F, %b, CUDA_R_32F, %n, CUDA_R_32F, %c3
  // CHECK: tfrt_gpu.dnn.convolution_forward_algorithm CUDNN_CONVOLUTION_FWD_ALGO_GEMM
  %algo = tfrt_gpu.dnn.convolution_forward_algorithm CUDNN_CONVOLUTION_FWD_ALGO_GEMM
  // CHECK: tfrt_gpu.fft.create %{{[0-9]+}}, CUFFT_C2C, 1, [2, 2], [4, 2, 1], [4, 2, 1]
  %fft = tfrt_gpu.fft.create %context, CUFFT_C2C, 1, [2, 2], [4, 2, 1], [4, 2, 1]
  // A value of another library has no name: it is printed as it is.
  // CHECK: "tfrt_gpu.blas.gemm.algo"() {algo = 6 : si32}
  %other = "tfrt_gpu.blas.gemm.algo"() {algo = 6 : si32} : () -> !tfrt_gpu.blas.gemm.algo
  tfrt.return
}
