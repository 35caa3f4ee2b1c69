// RUN: run --gpu-driver sim
//
// A kernel that doubles eight numbers, on a stream, by a table of modules.

// CHECK-LABEL: --- Running 'doubled'
func.func @doubled() {
  %c0 = tfrt.new.chain
  %c1 = tfrt_cuda.init %c0
  %zero = tfrt.constant.i32 0
  %device, %c2 = tfrt_cuda.device.get %zero, %c1
  %context, %c3 = tfrt_cuda_test.context.get %device, %c2
  %allocator, %c4 = tfrt_cuda.allocator.create %context, %c3
  %stream, %c5 = tfrt_cuda.stream.create %context, %c4
  %c6 = tfrt_cuda.module.load_static %context, %c5 {
    modules = [".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }", ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry double(.param .u64 numbers, .param .u32 n) {\n.reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .f32 %f<3>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [numbers];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra done;\nmul.wide.u32 %rd2, %r5, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.f32 %f1, [%rd3];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%rd3], %f2;\ndone: ret;\n}"],
    funcs_per_module = [1 : i32, 1 : i32],
    functions = ["nothing", "double"]
  }
  %one = tfrt.constant.ui32 1
  %none = tfrt.constant.ui32 0
  %c7 = tfrt_cuda.launch %c6 %context %one %one %one %one %one %one %none %stream { function_handle = 0 : ui64 }

  %host = tfrt_dht.create_uninitialized_tensor.f32.1 [8 : i64]
  %c8 = tfrt_dht.fill_tensor_with_constant.f32 %host, %c7 1.5 : f32
  %bytes, %c9 = tfrt_dht.get_buffer %host, %c8
  %size = tfrt.constant.i64 32
  %buffer, %c10 = tfrt_cuda.mem.allocate %allocator, %stream, %size, %c9
  %c11 = tfrt_cuda.mem.copy_host_to_device %context, %buffer, %bytes, %size, %stream, %c10
  %two = tfrt.constant.ui32 2
  %four = tfrt.constant.ui32 4
  %eight = tfrt.constant.i32 8
  %c12 = tfrt_cuda.launch %c11 %context %two %one %one %four %one %one %none %stream { function_handle = 1 : ui64 } (%buffer, %eight) : (!tfrt_cuda.buffer, i32)
  %c13 = tfrt_cuda.mem.copy_device_to_host %context, %bytes, %buffer, %size, %stream, %c12
  %c14 = tfrt_cuda.stream.synchronize %stream, %c13
  // CHECK: shape = [8], values = [3.000000e+00, 3.000000e+00, 3.000000e+00, 3.000000e+00, 3.000000e+00, 3.000000e+00, 3.000000e+00, 3.000000e+00]
  %c15 = tfrt_dht.print_tensor %host, %c14
  %c16 = tfrt_cuda.allocator.destroy %allocator, %c15
  tfrt.return
}
