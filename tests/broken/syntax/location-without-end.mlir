func.func @main() {
  tfrt.return loc("a.mlir":3:1
}
