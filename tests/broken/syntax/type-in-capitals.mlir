func.func @main(%a: I32) -> F32 {
  TFRT.return %a : I32
}
