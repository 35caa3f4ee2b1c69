// RUN: opt --passes graph-lower
func.func @main(%p: tensor<i1>) -> tensor<*xf32> {
  %a = "onnx.Constant"() {value_float = 1.0 : f32} : () -> tensor<f32>
  %b = "onnx.Constant"() {value = dense<0> : tensor<2xi3>} : () -> tensor<2xi3>
  %c = "onnx.If"(%p) ({
    "graph.yield"(%a) : (tensor<f32>) -> ()
  }) : (tensor<i1>) -> tensor<*xf32>
  %d = "onnx.Add"(%a, %c) ({
    "graph.yield"() : () -> ()
  }) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  tfrt.return %d : tensor<*xf32>
}
