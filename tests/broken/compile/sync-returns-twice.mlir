func.func @main(%a: i32) -> (i32, i32) attributes {tfrt.sync} {
  %x = "tfrt.add_s.i32"(%a, %a) : (i32, i32) -> i32
  tfrt.return %x, %x : i32, i32
}
