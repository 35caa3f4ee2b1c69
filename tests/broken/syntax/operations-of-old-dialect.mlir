func.func @main() {
  %c = hex.new.chain
  %x = hex.constant.i32 1
  %d = hex.print.i32 %x, %c
  hex.return
}
