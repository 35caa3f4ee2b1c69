// RUN: run --gpu-driver sim --init setup
// EXIT: 3
//
// Operations of the core runtime on a GPU: handlers, copies, results by name.

// CHECK-LABEL: --- Running 'setup'
func.func @setup() {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  corert.register_op_handler %cpu "cpu"
  %zero = tfrt.constant.i32 0
  %gpu = "corert.create_gpu_op_handler"(%zero, %null) : (i32, !corert.ophandler) -> !corert.ophandler
  corert.register_op_handler %gpu "gpu"
  %one = tfrt.constant.i32 1
  %other = "corert.create_gpu_op_handler"(%one, %cpu) : (i32, !corert.ophandler) -> !corert.ophandler
  corert.register_op_handler %other "other"
  tfrt.return
}

// CHECK-LABEL: --- Running 'copies'
func.func @copies() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %gpu = corert.get_op_handler %c0 "gpu"
  %there = "tfrt.get_device"(%c0) {device_name = "GPU:0"} : (!tfrt.chain) -> !tfrt.device
  %here = "tfrt.get_device"(%c0) {device_name = "CPU:0"} : (!tfrt.chain) -> !tfrt.device
  %x = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [3], values = [-1.5 : f32, 2.0 : f32, 3.25 : f32]} : 1
  %type = corert.get_dst_tensor_type %x, %there
  // CHECK: tensor_type = DenseGpu
  %c1 = "tfrt_test.print_tensor_type"(%type, %c0) : (!tfrt.tensor_type, !tfrt.chain) -> !tfrt.chain
  %copy = corert.transfer %x, %there, %type
  // CHECK: DenseGpuTensor<dtype=f32, shape=[3], pointer={{0x[0-9a-f]+}} (CUDA)>
  %c2 = "corert.print_tensorhandle"(%copy, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %y = corert.executeop(%gpu) "tf.Relu"(%copy) : 1
  %dense = "tfrt_test.get_static_tensor_type"() {tensor_type = "DenseHost"} : () -> !tfrt.tensor_type
  %back = corert.transfer %y, %here, %dense
  // CHECK: DenseHostTensor dtype = f32, shape = [3], values = [0.000000e+00, 2.000000e+00, 3.250000e+00]
  %c3 = "corert.print_tensorhandle"(%back, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c3 : !tfrt.chain
}

// Each operation is given its operands where it runs; what the second GPU has no kernel for runs on the processor.
// CHECK-LABEL: --- Running 'mixed'
func.func @mixed() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %gpu = corert.get_op_handler %c0 "gpu"
  %other = corert.get_op_handler %c0 "other"
  %x = corert.executeop(%gpu) "tf.Const"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>, dtype = f32} : 1
  %y = corert.executeop(%other) "tf.MatMul"(%x, %x) : 1
  %axis = corert.executeop(%other) "tf.Const"() {value = dense<0> : tensor<i32>, dtype = i32} : 1
  %sums = corert.executeop(%other) "tf.Cumsum"(%y, %axis) : 1
  %back = corert.executeop(%gpu) "tf.AddV2"(%sums, %x) : 1
  %host = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%back) : 1
  // CHECK: DenseHostTensor dtype = f32, shape = [2, 2], values = [8, 12, 25, 36]
  %c1 = corert.executeop.seq(%gpu, %c0) "tfrt_test.print"(%host) : 0
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'images'
func.func @images() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %gpu = corert.get_op_handler %c0 "gpu"
  %x = corert.executeop(%gpu) "tf.Const"() {value = dense<[[[[1.0, -1.0], [2.0, -2.0]], [[3.0, -3.0], [4.0, -4.0]]]]> : tensor<1x2x2x2xf32>, dtype = f32} : 1
  %filter = corert.executeop(%gpu) "tf.Const"() {value = dense<[[[[1.0], [2.0]]]]> : tensor<1x1x2x1xf32>, dtype = f32} : 1
  %conv = corert.executeop(%gpu) "tf.Conv2D"(%x, %filter) {data_format = "NHWC", padding = "VALID", strides = [1, 1, 1, 1]} : 1
  %h0 = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%conv) : 1
  // CHECK: shape = [1, 2, 2, 1], values = [-1, -2, -3, -4]
  %c1 = corert.executeop.seq(%gpu, %c0) "tfrt_test.print"(%h0) : 0
  %pool = corert.executeop(%gpu) "tf.MaxPool"(%x) {data_format = "NHWC", padding = "VALID", ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1]} : 1
  %h1 = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%pool) : 1
  // CHECK: shape = [1, 1, 1, 2], values = [4, -1]
  %c2 = corert.executeop.seq(%gpu, %c1) "tfrt_test.print"(%h1) : 0
  %bias = corert.executeop(%gpu) "tf.Const"() {value = dense<[10.0, 20.0]> : tensor<2xf32>, dtype = f32} : 1
  %added = corert.executeop(%gpu) "tf.BiasAdd"(%pool, %bias) : 1
  %h2 = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%added) : 1
  // CHECK: shape = [1, 1, 1, 2], values = [14, 19]
  %c3 = corert.executeop.seq(%gpu, %c2) "tfrt_test.print"(%h2) : 0
  %one = corert.executeop(%gpu) "tf.Const"() {value = dense<1.0> : tensor<2xf32>, dtype = f32} : 1
  %n:6 = corert.executeop(%gpu) "tf._FusedBatchNormEx"(%x, %one, %bias, %bias, %one, %x) {epsilon = 0.0 : f32, data_format = "NHWC", activation_mode = "Relu"} : 6
  %h3 = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%n#0) : 1
  // CHECK: shape = [1, 2, 2, 2], values = [2, 0, 4, 0, 6, 0, 8, 0]
  %c4 = corert.executeop.seq(%gpu, %c3) "tfrt_test.print"(%h3) : 0
  %pads = corert.executeop(%gpu) "tf.Const"() {value = dense<[[0, 0], [0, 0], [0, 0], [1, 0]]> : tensor<4x2xi32>, dtype = i32} : 1
  %padded = corert.executeop(%gpu) "tf.Pad"(%pool, %pads) : 1
  %h4 = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%padded) : 1
  // CHECK: shape = [1, 1, 1, 3], values = [0, 4, -1]
  %c5 = corert.executeop.seq(%gpu, %c4) "tfrt_test.print"(%h4) : 0
  %mean = corert.executeop(%gpu) "_tf.Mean"(%x) {reduction_indices = dense<[1, 2]> : tensor<2xi32>} : 1
  %h5 = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%mean) : 1
  // CHECK: shape = [1, 2], values = [2.5, -2.5]
  %c6 = corert.executeop.seq(%gpu, %c5) "tfrt_test.print"(%h5) : 0
  tfrt.return %c6 : !tfrt.chain
}

// Half precision is rounded once; `Truncate` cuts off the digits that the other type lacks.
// CHECK-LABEL: --- Running 'halves'
func.func @halves() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %gpu = corert.get_op_handler %c0 "gpu"
  %x = corert.executeop(%gpu) "tf.Const"() {value = dense<[1.2, -0.5]> : tensor<2xf32>, dtype = f32} : 1
  %half = corert.executeop(%gpu) "tf.Cast"(%x) {SrcT = f32, DstT = f16, Truncate = false} : 1
  %cut = corert.executeop(%gpu) "tf.Cast"(%x) {SrcT = f32, DstT = f16, Truncate = true} : 1
  %sum = corert.executeop(%gpu) "tf.AddV2"(%half, %cut) : 1
  %back = corert.executeop(%gpu) "tf.Cast"(%sum) {SrcT = f16, DstT = f32, Truncate = false} : 1
  %host = corert.executeop(%gpu) "tfrt_test.gpu_tensor_to_host_tensor"(%back) : 1
  // CHECK: DenseHostTensor dtype = f32, shape = [2], values = [2.3984375, -1]
  %c1 = corert.executeop.seq(%gpu, %c0) "tfrt_test.print"(%host) : 0
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'unknown'
func.func @unknown() {
  %c0 = tfrt.new.chain
  %gpu = corert.get_op_handler %c0 "gpu"
  // STDERR-DAG: core_runtime.mlir:[[@LINE+1]]:{{.*}}tf.Rely was not supported by NullOpHandler.
  %x = corert.executeop(%gpu) "tf.Rely"() : 1
  tfrt.return
}

// CHECK-LABEL: --- Running 'strings'
func.func @strings() {
  %c0 = tfrt.new.chain
  %gpu = corert.get_op_handler %c0 "gpu"
  %here = "tfrt.get_device"(%c0) {device_name = "CPU:0"} : (!tfrt.chain) -> !tfrt.device
  %x = corert.executeop(%gpu) "tf.Const"() {value = dense<1.0> : tensor<2xf32>, dtype = f32} : 1
  %type = "tfrt_test.get_static_tensor_type"() {tensor_type = "StringHost"} : () -> !tfrt.tensor_type
  // STDERR-DAG: core_runtime.mlir:[[@LINE+1]]:{{.*}}cannot find conversion function for {{\[DenseGpu\]->\[StringHost\]}}
  %y = corert.transfer %x, %here, %type
  tfrt.return
}

// CHECK-LABEL: --- Running 'no_device'
func.func @no_device() {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %n = tfrt.constant.i32 7
  // STDERR-DAG: core_runtime.mlir:[[@LINE+1]]:{{.*}}CUDA_ERROR_INVALID_DEVICE
  %gpu = "corert.create_gpu_op_handler"(%n, %null) : (i32, !corert.ophandler) -> !corert.ophandler
  tfrt.return
}
