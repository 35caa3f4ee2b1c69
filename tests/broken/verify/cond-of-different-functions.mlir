func.func @main(%c: i1, %a: i32) -> i32 {
  %x = tfrt.cond %c @double @nothing(%a) : (i32) -> (i32)
  tfrt.return %x : i32
}
func.func @nothing() {
  tfrt.return
}
func.func @double(%a: i32) -> i32 {
  %x = tfrt.add.i32 %a, %a
  tfrt.return %x : i32
}
