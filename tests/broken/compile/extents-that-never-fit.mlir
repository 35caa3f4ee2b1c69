func.func @main(%x: tensor<2x4xf32>, %y: tensor<3xf32>) -> tensor<*xf32> attributes {model.input_names = ["x", "y"], model.output_names = ["z"]} {
  %a = "graph.add"(%x, %y) : (tensor<2x4xf32>, tensor<3xf32>) -> tensor<*xf32>
  %z = "graph.softmax"(%a) : (tensor<*xf32>) -> tensor<*xf32>
  tfrt.return %z : tensor<*xf32>
}
