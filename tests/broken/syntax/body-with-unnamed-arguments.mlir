func.func @main(i32) {
  tfrt.return
}
