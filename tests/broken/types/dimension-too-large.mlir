func.func @main(%a: tensor<99999999999999999999xi32>) {
  tfrt.return
}
