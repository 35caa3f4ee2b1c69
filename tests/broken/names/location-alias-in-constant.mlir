#a = loc("a.mlir":1:1)
func.func @main() attributes {from = loc(#a)} {
  tfrt.return
}
