func.func @main() -> i32 {
  %a = tfrt.constant.i32 1
  %x = tfrt.ad.i32 %a, %a
  tfrt.return %x : i32
}
