func.func @main() -> i32 {
  %x = "tfrt_test.do.async"() ({
    "my.end"() : () -> ()
  }) : () -> i32
  tfrt.return %x : i32
}
