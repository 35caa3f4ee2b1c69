// RUN: run --gpu-driver sim --queue single
// EXIT: 3
//
// What goes wrong is one error at the kernel's place, and the host goes on.

func.func @device() {
  %n = tfrt.constant.i32 -1
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE
  %device = tfrt_gpu.device.get CUDA, %n
  %zero = tfrt.constant.i32 0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}no driver of platform ROCm
  %other = tfrt_gpu.device.get ROCm, %zero
  tfrt.return
}

func.func @modules() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}data attribute must be null-terminated
  %a = tfrt_gpu.module.load %context {data = "no zero"}
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_INVALID_IMAGE
  %b = tfrt_gpu.module.load %context {data = "no image\00"}
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_INVALID_PTX: line 3: unknown 'jump;'
  %c = tfrt_gpu.module.load %context {data = ".version 6.0\n.target sm_50\njump;\00"}
  %module = tfrt_gpu.module.load %context {data = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry f(.param .u64 at, .param .u32 n) { ret; }\00"}
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_NOT_FOUND: no kernel 'g'
  %g = tfrt_gpu.module.get_function %module {name = "g"}
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_NOT_FOUND: no variable 'g'
  %v = tfrt_gpu.module.get_global %module {name = "g"}
  tfrt.return
}

func.func @launches() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %module = tfrt_gpu.module.load %context {data = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry f(.param .u64 at, .param .u32 n) { ret; }\00"}
  %f = tfrt_gpu.module.get_function %module {name = "f"}
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 8
  %b = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
  %one = tfrt.constant.ui64 1
  %many = tfrt.constant.ui64 5000000000
  %wide = tfrt.constant.ui64 2048
  %none = tfrt.constant.ui32 0
  %much = tfrt.constant.ui32 100000
  %x = tfrt.constant.f64 1.0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}kernel f takes 2 arguments, found 1
  %c1 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c0, args(%b) : (!tfrt_gpu.buffer)
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}argument 1 of kernel f has 4 bytes, found 8
  %c2 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c0, args(%b, %x) : (!tfrt_gpu.buffer, f64)
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected at least one and at most 2147483647 x 65535 x 65535 blocks, found 5000000000 x 1 x 1
  %c3 = tfrt_gpu.function.launch %stream, %f, blocks in (%many, %one, %one), threads in (%one, %one, %one), %none, %c0, args(%b, %zero) : (!tfrt_gpu.buffer, i32)
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected at least one and at most 1024 x 1024 x 64 threads in a block, found 2048 x 1 x 1
  %c4 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%wide, %one, %one), %none, %c0, args(%b, %zero) : (!tfrt_gpu.buffer, i32)
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}kernel f would use 100000 bytes of shared memory, a block has at most 49152
  %c5 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%one, %one, %one), %much, %c0, args(%b, %zero) : (!tfrt_gpu.buffer, i32)
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}Unsupported argument type
  %c6 = tfrt_gpu.function.launch %stream, %f, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c0, args(%b, %size) : (!tfrt_gpu.buffer, i64)
  tfrt.return
}

func.func @memory() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %other = tfrt_gpu.context.create %device
  %elsewhere = tfrt_gpu.stream.create %other
  %c0 = tfrt.new.chain
  %minus = tfrt.constant.i64 -1
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected a number of bytes to allocate, found -1
  %n = tfrt_gpu.mem.allocate %allocator, %stream, %minus, %c0
  %huge = tfrt.constant.i64 1000000000000
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY
  %h = tfrt_gpu.mem.allocate %allocator, %stream, %huge, %c0
  %size = tfrt.constant.i64 8
  %four = tfrt.constant.i64 4
  %b = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
  %small = tfrt_gpu.mem.allocate %allocator, %stream, %four, %c0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}Buffer sizes don't match: 4 (dst size) vs 8 (src size)
  %c1 = tfrt_gpu.mem.copy %small, %b, %stream, %c0 : !tfrt_gpu.buffer, !tfrt_gpu.buffer
  %value = tfrt.constant.i64 1
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}Expected 32 bit value.
  %c2 = tfrt_gpu.mem.set %b, %value, %stream, %c0 : i64
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected a buffer of the stream's context, found one of another
  %c3 = tfrt_gpu.mem.set %b, %zero, %elsewhere, %c0 : i32
  %at = tfrt.constant.ui64 6
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}buffer size (8) is smaller than offset (6) plus size (6)
  %part = tfrt_gpu.mem.view %b, %at, %at
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected memory that the host reads, found memory of a device
  %loaded = tfrt_gpu.mem.load %b, %c0 : i32
  %c4 = tfrt_gpu.mem.deallocate %b, %stream, %c0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}the buffer was given back
  %c5 = tfrt_gpu.mem.set %b, %zero, %stream, %c4 : i32
  %event = tfrt_gpu.event.create %other
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected an event of the stream's context, found one of another
  %c6 = tfrt_gpu.event.record %event, %stream, %c0
  tfrt.return
}

func.func @libraries() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %blas = tfrt_gpu.blas.create %context
  %algo = tfrt_gpu.blas.gemm.algo CUBLAS_GEMM_DEFAULT
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 8
  %b = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
  %n = tfrt.constant.i32 2
  %three = tfrt.constant.i32 3
  %one = tfrt.constant.f32 1.0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}a vector takes 28 bytes, the buffer has 8
  %c1 = tfrt_gpu.blas.scal %blas, %stream, %three, %one, CUDA_R_32F, %b, CUDA_R_32F, %three, CUDA_R_32F, %c0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}matrix A takes 16 bytes, the buffer has 8
  %c2 = tfrt_gpu.blas.gemm %blas, %stream, CUBLAS_OP_N, CUBLAS_OP_N, %n, %n, %n, %one, %b, CUDA_R_32F, %n, %b, CUDA_R_32F, %n, %one, %b, CUDA_R_32F, %n, CUBLAS_COMPUTE_32F, %algo, %c0
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}in_strides should be one larger than dims.
  %f = tfrt_gpu.fft.create %context, CUFFT_C2C, 1, [2], [2], [2, 1]
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}Only row-major layout is supported
  %g = tfrt_gpu.fft.create %context, CUFFT_C2C, 1, [2], [1, 2], [2, 1]
  %id = tfrt_gpu.ccl.unique_id CUDA
  // STDERR-DAG: gpu_errors.mlir:[[@LINE+1]]:{{.*}}expected rank 3 of 2 to be free and in range
  %ccl = tfrt_gpu.ccl.create %context, %three, %n, %id
  tfrt.return
}
