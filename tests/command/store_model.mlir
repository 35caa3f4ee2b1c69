// RUN: opt --passes onnx-to-graph,graph-infer,graph-layout,graph-fuse,graph-prepare,graph-lower,graph-store

// Packed weights are made now, with what they are packed for; what they are made of goes.
// CHECK-LABEL: func.func private @main.constants
// CHECK-NOT: cpu.graph.prepare
// CHECK-NOT: tensor<8x1x3x3xf32>
// CHECK: "cpu.stored.value"() {head = dense<{{.*}}> : tensor<{{[0-9]+}}xui8>, part000 = dense<{{.*}}> : tensor<288xui8>, type = "!graph.prepared", version = 1}
// CHECK: "cpu.stored.value"() {head = dense<{{.*}}> : tensor<{{[0-9]+}}xui8>, part000 = dense<{{.*}}> : tensor<{{[0-9]+}}xui8>, type = "!graph.prepared", version = 1}
// CHECK-NOT: cpu.graph.prepare
// CHECK-LABEL: func.func @main
// CHECK: "cpu.fused.conv"
// CHECK: "cpu.fused.matmul"
module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<1x8x5x5xf32>) -> tensor<1x2xf32>
      attributes {model.input_names = ["x"], model.output_names = ["y"]} {
    %w = "onnx.Constant"() {value = dense<1.0> : tensor<8x1x3x3xf32>} : () -> tensor<8x1x3x3xf32>
    %a = "onnx.Conv"(%x, %w) {group = 8 : i64, kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
        : (tensor<1x8x5x5xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x5x5xf32>
    %b = "onnx.GlobalAveragePool"(%a) : (tensor<1x8x5x5xf32>) -> tensor<1x8x1x1xf32>
    %c = "onnx.Flatten"(%b) : (tensor<1x8x1x1xf32>) -> tensor<1x8xf32>
    %m = "onnx.Constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0],
        [1.0, 2.0], [3.0, 4.0]]> : tensor<8x2xf32>} : () -> tensor<8x2xf32>
    %y = "onnx.MatMul"(%c, %m) : (tensor<1x8xf32>, tensor<8x2xf32>) -> tensor<1x2xf32>
    func.return %y : tensor<1x2xf32>
  }
}
