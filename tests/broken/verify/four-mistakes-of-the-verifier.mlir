func.func @main(%a: i32, %f: f32) -> i32 {
  %y = "tfrt.add.i32"(%a, %f) : (i32, f32) -> i32
  %w = tfrt.call @hepler(%y) : (i32) -> i32
  tfrt.print.i32 %y
  tfrt.return %a, %a : i32, i32
}
func.func @helper(%a: i32) -> i32 {
  tfrt.return %a : i32
}
