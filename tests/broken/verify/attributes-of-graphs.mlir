func.func @main(%x: tensor<2x4xf32>, %s: tensor<4xf32>) {
  %a = "graph.softmax"(%x) {axes = 1, my.note = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = "graph.reduce"(%x) {kind = "maxx"} : (tensor<2x4xf32>) -> tensor<f32>
  %c = "graph.norm"(%x, %s) {groups = 2, kind = "layer"} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %d = "graph.cast"(%x) {saturate = 1.0} : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %e:2 = "graph.split"(%x) {n = 3} : (tensor<2x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  tfrt.return
}
