func.func @main() {
  %c = tfrt.new.chain
  %d = tfrt.print.i32 %c, %c
  tfrt.return
}
