// RUN: run --gpu-driver sim --queue single
// EXIT: 3
//
// A kernel that writes where no memory is loses its context: whoever waits hears of it, at its place, and later commands
// are refused with the kernel that was launched last. Other contexts and the host go on.

func.func @lost() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %module = tfrt_gpu.module.load %context {data = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry wild() {\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nmov.u64 %rd1, 64;\nmov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;\nret;\n}\00"}
  %wild = tfrt_gpu.module.get_function %module {name = "wild"}
  %one = tfrt.constant.ui64 1
  %none = tfrt.constant.ui32 0
  %c0 = tfrt.new.chain
  %c1 = tfrt_gpu.function.launch %stream, %wild, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c0
  // STDERR-DAG: gpu_lost.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_ILLEGAL_ADDRESS
  %c2 = tfrt_gpu.stream.synchronize %stream, %c1
  tfrt.return
}

// CHECK-LABEL: --- Running 'after':
func.func @after() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %size = tfrt.constant.i64 4
  %c0 = tfrt.new.chain
  %buffer = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
  %seven = tfrt.constant.i32 7
  %c1 = tfrt_gpu.mem.set %buffer, %seven, %stream, %c0 : i32
  %c2 = tfrt_gpu.stream.synchronize %stream, %c1
  // CHECK: int32 = 7
  %c3 = tfrt.print.i32 %seven, %c2
  tfrt.return
}
