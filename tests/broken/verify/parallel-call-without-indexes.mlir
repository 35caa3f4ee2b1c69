func.func @main(%a: i32, %b: i32, %n: i32, %x: i64) {
  %c = tfrt.parallel_call.i32 %a to %b fixed %n @body(%x) : i64
  tfrt.return
}
func.func @body(%x: i64) {
  tfrt.return
}
