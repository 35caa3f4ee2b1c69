func.func @main(%a: !n) {
  tfrt.return
}
!n = i32
