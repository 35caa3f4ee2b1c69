func.func @main() -> i32 {
  %x = "tfrt_test.do.async"() ({
    %a = tfrt.constant.i32 1
    func.return %a : i32
  }) : () -> i32
  tfrt.return %x : i32
}
