func.func @main(%a: i32) -> i32 attributes {tfrt.sync} {
  tfrt.return %a : i32
}
