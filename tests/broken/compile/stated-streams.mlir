func.func @main() attributes {_tfrt_streams = [array<i64: 0>]} {
  %c = tfrt.new.chain
  tfrt.return
}
