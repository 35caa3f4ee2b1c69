// Seven mistakes: those of the syntax are told first, and keep the others from being seen.
func.func @main(%a: i32, %f: f32) -> i32 {
  %x = tfrt.ad.i32 %a, %a
  %y = "tfrt.add.i32"(%a, %f) : (i32, f32) -> i32
  %z = tfrt.constant.i32 3000000000000
  %w = tfrt.call @hepler(%x) : (i32) -> i32
  %v = tfrt.add.i32 %nothing, %a
  tfrt.print.i32 %y
  tfrt.return %y, %w : i32, i32
}
func.func @helper(%a: i32) -> i32 {
  tfrt.return %a : i32
}
