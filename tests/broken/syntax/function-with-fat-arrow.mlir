func.func @main(%x : i32) => i32 {
  tfrt.return %x : i32
}
