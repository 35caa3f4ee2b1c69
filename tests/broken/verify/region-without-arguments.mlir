func.func @main(%b: i32) -> i32 {
  %x = "tfrt_test.do.async"(%b) ({
    %a = tfrt.constant.i32 1
    tfrt.return %a : i32
  }) : (i32) -> i32
  tfrt.return %x : i32
}
