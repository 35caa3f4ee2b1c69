// RUN: run --gpu-driver sim
//
// Kernels of a program's own: arguments of every type, variables of a module, pinned memory of the host.

// CHECK-LABEL: --- Running 'arguments'
func.func @arguments() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  // out[0] = n + table[1], out[1] = x * y
  %module = tfrt_gpu.module.load %context {
    data = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .b32 table[2] = {30, 12};\n.visible .entry fill(.param .u64 out, .param .u32 n, .param .f32 x, .param .f64 y) {\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n.reg .f32 %f<4>;\n.reg .f64 %fd<2>;\nld.param.u64 %rd1, [out];\nld.param.u32 %r1, [n];\nld.param.f32 %f1, [x];\nld.param.f64 %fd1, [y];\nmov.u64 %rd2, table;\nld.global.u32 %r2, [%rd2+4];\nadd.s32 %r3, %r1, %r2;\nst.global.u32 [%rd1], %r3;\ncvt.rn.f32.f64 %f2, %fd1;\nmul.f32 %f3, %f1, %f2;\ncvt.rzi.s32.f32 %r3, %f3;\nst.global.u32 [%rd1+4], %r3;\nret;\n}\00"
  }
  %function = tfrt_gpu.module.get_function %module {name = "fill"}
  %c0 = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.i32 %t, %c0 0 : i32
  %h, %c2 = tfrt_dht.get_buffer %t, %c1
  %out = tfrt_gpu.mem.register %context, %h
  %n = tfrt.constant.i32 30
  %x = tfrt.constant.f32 2.5
  %y = tfrt.constant.f64 4.0
  %one = tfrt.constant.ui64 1
  %none = tfrt.constant.ui32 0
  %c3 = tfrt_gpu.function.launch %stream, %function, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c2, args(%out, %n, %x, %y) : (!tfrt_gpu.buffer, i32, f32, f64)
  %c4 = tfrt_gpu.stream.synchronize %stream, %c3
  // CHECK: shape = [2], values = [42, 10]
  %c5 = tfrt_dht.print_tensor %t, %c4
  // The host has written the variable, which the next launch reads.
  %table = tfrt_gpu.module.get_global %module {name = "table"}
  %five = tfrt.constant.i32 5
  %c6 = tfrt_gpu.mem.set %table, %five, %stream, %c5 : i32
  %c7 = tfrt_gpu.function.launch %stream, %function, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c6, args(%out, %n, %x, %y) : (!tfrt_gpu.buffer, i32, f32, f64)
  %c8 = tfrt_gpu.stream.synchronize %stream, %c7
  // CHECK: shape = [2], values = [35, 10]
  %c9 = tfrt_dht.print_tensor %t, %c8
  tfrt.return
}

// Two streams of which one waits for the other.
// CHECK-LABEL: --- Running 'streams'
func.func @streams() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.primary %device
  %first = tfrt_gpu.stream.create %context
  %second = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %module = tfrt_gpu.module.load %context {
    data = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry more(.param .u64 at) { .reg .b32 %r<3>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [at]; ld.global.u32 %r1, [%rd1]; add.s32 %r2, %r1, 1; st.global.u32 [%rd1], %r2; ret; }\00"
  }
  %more = tfrt_gpu.module.get_function %module {name = "more"}
  %c0 = tfrt.new.chain
  %size = tfrt.constant.i64 4
  %b = tfrt_gpu.mem.allocate %allocator, %first, %size, %c0
  %n = tfrt.constant.i32 40
  %c1 = tfrt_gpu.mem.set %b, %n, %first, %c0 : i32
  %one = tfrt.constant.ui64 1
  %none = tfrt.constant.ui32 0
  %c2 = tfrt_gpu.function.launch %first, %more, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c1, args(%b) : (!tfrt_gpu.buffer)
  %event = tfrt_gpu.event.create %context
  %c3 = tfrt_gpu.event.record %event, %first, %c2
  %c4 = tfrt_gpu.stream.wait %second, %event, %c3
  %c5 = tfrt_gpu.function.launch %second, %more, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c4, args(%b) : (!tfrt_gpu.buffer)
  %t = tfrt_dht.create_uninitialized_tensor.i32.0 []
  %h, %c6 = tfrt_dht.get_buffer %t, %c5
  %c7 = tfrt_gpu.mem.copy %h, %b, %second, %c6 : !ht.host_buffer, !tfrt_gpu.buffer
  // CHECK: shape = [], values = [42]
  %c8 = tfrt_dht.print_tensor %t, %c7
  tfrt.return
}

// A loop whose condition a kernel writes into memory that the host reads.
func.func @body(%c0: !tfrt.chain, %stream: !tfrt_gpu.stream, %function: !tfrt_gpu.function, %value: !tfrt_gpu.buffer, %again: !tfrt_gpu.buffer) -> (!tfrt.chain, !tfrt_gpu.stream, !tfrt_gpu.function, !tfrt_gpu.buffer, !tfrt_gpu.buffer, i1) {
  %one = tfrt.constant.ui64 1
  %none = tfrt.constant.ui32 0
  %c1 = tfrt_gpu.function.launch %stream, %function, blocks in (%one, %one, %one), threads in (%one, %one, %one), %none, %c0, args(%value, %again) : (!tfrt_gpu.buffer, !tfrt_gpu.buffer)
  %c2 = tfrt_gpu.stream.synchronize %stream, %c1
  %next = tfrt_gpu.mem.load %again, %c2 : i1
  tfrt.return %c2, %stream, %function, %value, %again, %next : !tfrt.chain, !tfrt_gpu.stream, !tfrt_gpu.function, !tfrt_gpu.buffer, !tfrt_gpu.buffer, i1
}

// CHECK-LABEL: --- Running 'loop'
func.func @loop() {
  %zero = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %zero
  %context = tfrt_gpu.context.create %device
  %stream = tfrt_gpu.stream.create %context
  // value *= 3, again = value < 50
  %module = tfrt_gpu.module.load %context {
    data = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry step(.param .u64 value, .param .u64 again) { .reg .pred %p<2>; .reg .b16 %rs<2>; .reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [value]; ld.param.u64 %rd2, [again]; ld.global.u32 %r1, [%rd1]; mul.lo.s32 %r2, %r1, 3; st.global.u32 [%rd1], %r2; setp.lt.s32 %p1, %r2, 50; selp.u16 %rs1, 1, 0, %p1; st.global.u8 [%rd2], %rs1; ret; }\00"
  }
  %function = tfrt_gpu.module.get_function %module {name = "step"}
  %c0 = tfrt.new.chain
  %four = tfrt.constant.i64 4
  %byte = tfrt.constant.i64 1
  %value = tfrt_gpu.mem.allocate_host %context, %four, %c0
  %again = tfrt_gpu.mem.allocate_host %context, %byte, %c0
  %two = tfrt.constant.i32 2
  %c1 = tfrt_gpu.mem.set %value, %two, %stream, %c0 : i32
  %yes = tfrt.constant.i1 true
  %end:5 = tfrt.while %yes @body(%c1, %stream, %function, %value, %again) parallel_iterations(1) : (!tfrt.chain, !tfrt_gpu.stream, !tfrt_gpu.function, !tfrt_gpu.buffer, !tfrt_gpu.buffer) -> (!tfrt.chain, !tfrt_gpu.stream, !tfrt_gpu.function, !tfrt_gpu.buffer, !tfrt_gpu.buffer)
  %result = tfrt_gpu.mem.load %value, %end#0 : i32
  // CHECK: int32 = 54
  %c2 = tfrt.print.i32 %result, %end#0
  tfrt.return
}
