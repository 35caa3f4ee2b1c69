// RUN: opt --passes onnx-to-graph,graph-fold

// What is calculated of constants alone becomes a constant, but for what is random, what fails, what has no
// kernel, and what is much larger than what it is made of.
module attributes {onnx.opset = 17 : i64} {
  // CHECK: func.func @main
  // CHECK: %[[SUM:.*]] = "onnx.Constant"() {value = dense<[4.000000e+00, 7.000000e+00]> : tensor<2xf32>}
  // CHECK-NEXT: "graph.mul"(%{{.*}}, %[[SUM]])
  // CHECK: "onnx.Constant"() {value = dense<{{.*}}[1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>}
  // CHECK-NOT: graph.transpose
  // CHECK: "graph.dot"
  // CHECK: "graph.fill"
  // CHECK: "onnx.RandomNormalLike"
  // CHECK: "graph.reshape"
  // CHECK: "onnx.Unheard"
  func.func @main(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>, tensor<*xf32>, tensor<*xf32>,
      tensor<*xf32>, tensor<*xf32>) {
    %a = "onnx.Constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %b = "onnx.Constant"() {value = dense<[3.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %sum = "onnx.Add"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %scaled = "onnx.Mul"(%x, %sum) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
    %m = "onnx.Constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %turned = "onnx.Transpose"(%m) {perm = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %product = "onnx.MatMul"(%x, %turned) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
    %n = "onnx.Constant"() {value = dense<[1000000]> : tensor<1xi64>} : () -> tensor<1xi64>
    %large = "onnx.ConstantOfShape"(%n) : (tensor<1xi64>) -> tensor<*xf32>
    %random = "onnx.RandomNormalLike"(%a) : (tensor<2xf32>) -> tensor<*xf32>
    %three = "onnx.Constant"() {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
    %fails = "onnx.Reshape"(%a, %three) : (tensor<2xf32>, tensor<1xi64>) -> tensor<*xf32>
    %unheard = "onnx.Unheard"(%a) : (tensor<2xf32>) -> tensor<*xf32>
    tfrt.return %scaled, %product, %large, %random, %fails, %unheard : tensor<?x2xf32>, tensor<?x2xf32>,
      tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
  }
}
