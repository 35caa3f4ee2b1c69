func.func @f() -> i32 {
  %a = tfrt.constant.i32 42
  tfrt.return %a : i32
}
