func.func @main() {tfrt.sync} {
  tfrt.return
}
