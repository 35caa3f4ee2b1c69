func.func @main() {
  %a:0 = "tfrt.new.chain"() : () -> !tfrt.chain
  tfrt.return
}
