// RUN: run --gpu-driver sim
// EXIT: 3
//
// What goes wrong is one error at the kernel's place.

func.func @no_device() {
  %c0 = tfrt.new.chain
  %n = tfrt.constant.i32 7
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE
  %device, %c1 = tfrt_cuda.device.get %n, %c0
  tfrt.return
}

func.func @context(%c0: !tfrt.chain, %n: i32) -> (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain) {
  %device, %c1 = tfrt_cuda.device.get %n, %c0
  %context, %c2 = tfrt_cuda_test.context.get %device, %c1
  %allocator, %c3 = tfrt_cuda.allocator.create %context, %c2
  %stream, %c4 = tfrt_cuda.stream.create %context, %c3
  tfrt.return %context, %allocator, %stream, %c4 : !tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain
}

func.func @wrong_sizes() {
  %c0 = tfrt.new.chain
  %n = tfrt.constant.i32 0
  %context, %allocator, %stream, %c1 = tfrt.call @context(%c0, %n) : (!tfrt.chain, i32) -> (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain)
  %minus = tfrt.constant.i64 -1
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}expected a number of bytes to allocate, found -1
  %none, %c2 = tfrt_cuda.mem.allocate %allocator, %stream, %minus, %c1
  %size = tfrt.constant.i64 8
  %buffer, %c3 = tfrt_cuda.mem.allocate %allocator, %stream, %size, %c1
  %shape = ts.build_shape [3 : i64]
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}tfrt_cuda.tensor.make failed: buffer_size (8) is not equal to the number of elements in shape ([3]) times element size (4)
  %tensor, %c4 = tfrt_cuda.tensor.make.f32 %buffer, %shape, %c3
  %host = tfrt_dht.create_uninitialized_tensor.f32.1 [8 : i64]
  %bytes, %c5 = tfrt_dht.get_buffer %host, %c3
  %more = tfrt.constant.i64 32
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}destination buffer size (8) is less than number of bytes to copy (32)
  %c6 = tfrt_cuda.mem.copy_host_to_device %context, %buffer, %bytes, %more, %stream, %c5
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}source buffer size (8) is less than number of bytes to copy (32)
  %c7 = tfrt_cuda.mem.copy_device_to_host %context, %bytes, %buffer, %more, %stream, %c5
  tfrt.return
}

func.func @other_context() {
  %c0 = tfrt.new.chain
  %zero = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %context, %allocator, %stream, %c1 = tfrt.call @context(%c0, %zero) : (!tfrt.chain, i32) -> (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain)
  %context1, %allocator1, %stream1, %c2 = tfrt.call @context(%c0, %one) : (!tfrt.chain, i32) -> (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain)
  %size = tfrt.constant.i64 8
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}expected an allocator of the stream's context, found one of another
  %buffer, %c3 = tfrt_cuda.mem.allocate %allocator, %stream1, %size, %c2
  tfrt.return
}

func.func @modules() {
  %c0 = tfrt.new.chain
  %zero = tfrt.constant.i32 0
  %context, %allocator, %stream, %c1 = tfrt.call @context(%c0, %zero) : (!tfrt.chain, i32) -> (!tfrt_cuda.context, !tfrt_cuda.allocator, !tfrt_cuda.stream, !tfrt.chain)
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_INVALID_IMAGE
  %c2 = tfrt_cuda.module.load_static %context, %c1 { modules = ["no image"], funcs_per_module = [1 : i32], functions = ["f"] }
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_NOT_FOUND: no kernel 'g'
  %c3 = tfrt_cuda.module.load_static %context, %c1 { modules = [".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry f() { ret; }"], funcs_per_module = [1 : i32], functions = ["g"] }
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}CUDA module table spec is malformed; Invalid function count (-1) specified for module 0
  %c4 = tfrt_cuda.module.load_static %context, %c1 { modules = ["no image"], funcs_per_module = [-1 : i32], functions = ["f"] }
  %n = tfrt.constant.ui32 1
  %none = tfrt.constant.ui32 0
  // STDERR-DAG: cuda_errors.mlir:[[@LINE+1]]:{{.*}}CUDA module table has not been initialized for device 0
  %c5 = tfrt_cuda.launch %c1 %context %n %n %n %n %n %n %none %stream { function_handle = 0 : ui64 }
  tfrt.return
}
