// RUN: run --gpu-driver sim
//
// Linear algebra, solvers and Fourier transforms of `tfrt_gpu`.

func.func @up(%allocator: !tfrt_gpu.allocator, %stream: !tfrt_gpu.stream, %t: !t.tensor, %c0: !tfrt.chain) -> (!tfrt_gpu.buffer, !tfrt.chain) {
  %size = tfrt.constant.i64 16
  %b = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
  %h, %c1 = tfrt_dht.get_buffer %t, %c0
  %c2 = tfrt_gpu.mem.copy %b, %h, %stream, %c1 : !tfrt_gpu.buffer, !ht.host_buffer
  tfrt.return %b, %c2 : !tfrt_gpu.buffer, !tfrt.chain
}

func.func @shown(%stream: !tfrt_gpu.stream, %b: !tfrt_gpu.buffer, %c0: !tfrt.chain) -> !tfrt.chain {
  %t = tfrt_dht.create_uninitialized_tensor.f32.1 [4 : i64]
  %h, %c1 = tfrt_dht.get_buffer %t, %c0
  %c2 = tfrt_gpu.mem.copy %h, %b, %stream, %c1 : !ht.host_buffer, !tfrt_gpu.buffer
  %c3 = tfrt_dht.print_tensor %t, %c2
  tfrt.return %c3 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'linear'
func.func @linear() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %blas = tfrt_gpu.blas.create %context
  %algo = tfrt_gpu.blas.gemm.algo CUBLAS_GEMM_ALGO0
  %c0 = tfrt.new.chain
  %n1 = tfrt.constant.i32 1
  %n2 = tfrt.constant.i32 2
  %n4 = tfrt.constant.i32 4
  %t = tfrt_dht.create_uninitialized_tensor.f32.1 [4 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %t, %c0 [4.0 : f32, 2.0 : f32, 2.0 : f32, 10.0 : f32]
  %x, %c2 = tfrt.call @up(%allocator, %stream, %t, %c1) : (!tfrt_gpu.allocator, !tfrt_gpu.stream, !t.tensor, !tfrt.chain) -> (!tfrt_gpu.buffer, !tfrt.chain)
  %y, %c3 = tfrt.call @up(%allocator, %stream, %t, %c2) : (!tfrt_gpu.allocator, !tfrt_gpu.stream, !t.tensor, !tfrt.chain) -> (!tfrt_gpu.buffer, !tfrt.chain)
  %half = tfrt.constant.f32 0.5
  %one = tfrt.constant.f32 1.0
  %none = tfrt.constant.f32 0.0
  %c4 = tfrt_gpu.blas.scal %blas, %stream, %n4, %half, CUDA_R_32F, %y, CUDA_R_32F, %n1, CUDA_R_32F, %c3
  // CHECK: values = [2.000000e+00, 1.000000e+00, 1.000000e+00, 5.000000e+00]
  %c5 = tfrt.call @shown(%stream, %y, %c4) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  %c6 = tfrt_gpu.blas.axpy %blas, %stream, %n2, %one, CUDA_R_32F, %x, CUDA_R_32F, %n1, %y, CUDA_R_32F, %n2, CUDA_R_32F, %c5
  // CHECK: values = [6.000000e+00, 1.000000e+00, 3.000000e+00, 5.000000e+00]
  %c7 = tfrt.call @shown(%stream, %y, %c6) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  // x by the transposed of itself, which it is.
  %c8 = tfrt_gpu.blas.gemm %blas, %stream, CUBLAS_OP_N, CUBLAS_OP_T, %n2, %n2, %n2, %half, %x, CUDA_R_32F, %n2, %x, CUDA_R_32F, %n2, %none, %y, CUDA_R_32F, %n2, CUBLAS_COMPUTE_32F, %algo, %c7
  // CHECK: values = [1.000000e+01, 1.400000e+01, 1.400000e+01, 5.200000e+01]
  %c9 = tfrt.call @shown(%stream, %y, %c8) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  %stride = tfrt.constant.i64 1
  // Two products of numbers, of which the one matrix is for both.
  %same = tfrt.constant.i64 0
  %c10 = tfrt_gpu.blas.gemm.batch %blas, %stream, CUBLAS_OP_N, CUBLAS_OP_N, %n1, %n1, %n1, %one, %x, CUDA_R_32F, %n1, %stride, %x, CUDA_R_32F, %n1, %same, %one, %y, CUDA_R_32F, %n1, %stride, %n2, CUBLAS_COMPUTE_32F, %algo, %c9
  // CHECK: values = [2.600000e+01, 2.200000e+01, 1.400000e+01, 5.200000e+01]
  %c11 = tfrt.call @shown(%stream, %y, %c10) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  // The lower triangle of x, (4 0 / 2 10), solves for (26 22): 6.5 and 0.9; for (14 52): 3.5 and 4.5.
  %c12 = tfrt_gpu.blas.trsm.batch %blas, %stream, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, %n2, %n2, CUDA_R_32F, %one, %x, %n2, %y, %n2, %n1, %c11
  // CHECK: values = [6.500000e+00, 9.000000e-01, 3.500000e+00, 4.500000e+00]
  %c13 = tfrt.call @shown(%stream, %y, %c12) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  // x is the product of (2 0 / 1 3) with its transposed.
  %solver = tfrt_gpu.solver.create %context
  %bytes = tfrt_gpu.solver.potrf.buffer_size %solver, %stream, CUBLAS_FILL_MODE_LOWER, %n2, CUDA_R_32F, %n2, %c13
  %work = tfrt_gpu.mem.allocate %allocator, %stream, %bytes, %c13
  %four = tfrt.constant.i64 4
  %info = tfrt_gpu.mem.allocate %allocator, %stream, %four, %c13
  %c14 = tfrt_gpu.solver.potrf %solver, %stream, CUBLAS_FILL_MODE_LOWER, %n2, CUDA_R_32F, %x, %n2, %work, %info, %c13
  // CHECK: values = [2.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]
  %c15 = tfrt.call @shown(%stream, %x, %c14) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  // The transform of 2+1i, 2+3i.
  %fft = tfrt_gpu.fft.create %context, CUFFT_C2C, 1, [2], [2, 1], [2, 1]
  %more = tfrt_gpu.fft.get_workspace_size %fft
  %room = tfrt_gpu.mem.allocate %allocator, %stream, %more, %c15
  %c16 = tfrt_gpu.fft.execute %stream, %fft, %x, %y, %room, CUFFT_FORWARD, %c15
  // CHECK: values = [4.000000e+00, 4.000000e+00, 0.000000e+00, -2.000000e+00]
  %c17 = tfrt.call @shown(%stream, %y, %c16) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  // Back: twice what it was.
  %c18 = tfrt_gpu.fft.execute %stream, %fft, %y, %y, %room, CUFFT_INVERSE, %c17
  // CHECK: values = [4.000000e+00, 2.000000e+00, 4.000000e+00, 6.000000e+00]
  %c19 = tfrt.call @shown(%stream, %y, %c18) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  // Of four real numbers, three complex ones.
  %real = tfrt_gpu.fft.create %context, CUFFT_R2C, 1, [2], [2, 1], [2, 1]
  %c20 = tfrt_gpu.fft.execute %stream, %real, %x, %y, %room, CUFFT_FORWARD, %c19
  // CHECK: values = [3.000000e+00, 0.000000e+00, 1.000000e+00, 0.000000e+00]
  %c21 = tfrt.call @shown(%stream, %y, %c20) : (!tfrt_gpu.stream, !tfrt_gpu.buffer, !tfrt.chain) -> (!tfrt.chain)
  tfrt.return
}
