// RUN: opt --passes sequence-effects
func.func @main(%a: i32) {
  "my.effect"() : () -> ()
  tfrt.print.i32 %a
  tfrt.return
}
