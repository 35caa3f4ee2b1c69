func.func @main(%a: i32) {
  %x:2 = tfrt.call @double(%a) : (i32) -> (i32, i32)
  tfrt.return
}
func.func @double(%a: i32) -> i32 {
  %x = tfrt.add.i32 %a, %a
  tfrt.return %x : i32
}
