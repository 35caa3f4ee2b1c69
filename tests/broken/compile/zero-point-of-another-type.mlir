func.func @main(%x: tensor<2x4xi8>, %w: tensor<4x3xi8>, %z: tensor<ui8>) -> tensor<*xi32> attributes {model.input_names = ["x", "w", "z"], model.output_names = ["y"]} {
  %y = "onnx.MatMulInteger"(%x, %w, %z) : (tensor<2x4xi8>, tensor<4x3xi8>, tensor<ui8>) -> tensor<*xi32>
  tfrt.return %y : tensor<*xi32>
}
