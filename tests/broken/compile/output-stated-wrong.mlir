func.func @main(%x: tensor<2x3xf32>) -> tensor<2x5xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
  %y = "graph.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x5xf32>
  tfrt.return %y : tensor<2x5xf32>
}
