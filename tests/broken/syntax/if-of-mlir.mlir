func.func @main(%c: i1, %x: i32) -> i32 {
  %y = scf.if %c -> (i32) {
    scf.yield %x : i32
  } else {
    scf.yield %x : i32
  }
  tfrt.return %y : i32
}
