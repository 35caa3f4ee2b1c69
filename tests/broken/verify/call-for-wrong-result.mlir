func.func @main(%a: i32) -> i64 {
  %x = tfrt.call @double(%a) : (i32) -> i64
  tfrt.return %x : i64
}
func.func @double(%a: i32) -> i32 {
  %x = tfrt.add.i32 %a, %a
  tfrt.return %x : i32
}
