func.func @main(%x: tensor<2x4xf32>) -> tensor<*xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
  %y = "graph.softmax"(%x) {axis = 5 : i64} : (tensor<2x4xf32>) -> tensor<*xf32>
  tfrt.return %y : tensor<*xf32>
}
