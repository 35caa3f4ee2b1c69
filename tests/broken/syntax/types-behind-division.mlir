func.func @main() -> i32 {
  %a = tfrt.constant.i32 6
  %q, %r = tfrt.div.i32 %a, %a : i32
  tfrt.return %q : i32
}
