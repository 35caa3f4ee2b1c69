func.func @main(%a: i32, %b: f32) -> i32 {
  %x = "tfrt.add.i32"(%a, %b) : (i32, f32) -> i32
  tfrt.return %x : i32
}
