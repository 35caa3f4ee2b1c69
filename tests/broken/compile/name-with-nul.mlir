func.func @"ma\00in"() {
  tfrt.return
}
