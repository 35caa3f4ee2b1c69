func.func @main(%n: i32, %a: i32) -> i64 {
  %x = "tfrt.repeat.i32"(%n, %a) ({
  ^body(%b: i32):
    %y = tfrt.constant.i64 1
    tfrt.return %y : i64
  }) : (i32, i32) -> i64
  tfrt.return %x : i64
}
