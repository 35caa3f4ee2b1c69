// RUN: opt --passes sequence-effects
func.func @main(%a: i32) {
  tfrt.print.i32 %a
  tfrt.print.i32 %a {bef.nonstrict}
  tfrt.return
}
