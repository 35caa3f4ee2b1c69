func.func @main(%x: i32) -> i32 {
  %y = func.call @main(%x) : (i32) -> i32
  %z = call @main(%x) : (i32) -> i32
  tfrt.return %y : i32
}
