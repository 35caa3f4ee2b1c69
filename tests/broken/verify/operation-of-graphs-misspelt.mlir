func.func @main(%x: tensor<2x4xf32>) {
  %a = "graph.sofmax"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = "graph.add"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = "onnx.Sofmax"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  tfrt.return
}
