func.func @ma​in() {
  tfrt.return
}
