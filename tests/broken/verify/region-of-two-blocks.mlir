func.func @main() -> i32 {
  %x = "tfrt_test.do.async"() ({
    %a = tfrt.constant.i32 1
    tfrt.return %a : i32
  ^more:
    tfrt.return
  }) : () -> i32
  tfrt.return %x : i32
}
