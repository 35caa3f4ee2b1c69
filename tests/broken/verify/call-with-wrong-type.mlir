func.func @main() -> i32 {
  %a = tfrt.constant.i64 1
  %x = tfrt.call @double(%a) : (i64) -> i32
  tfrt.return %x : i32
}
func.func @double(%a: i32) -> i32 {
  %x = tfrt.add.i32 %a, %a
  tfrt.return %x : i32
}
