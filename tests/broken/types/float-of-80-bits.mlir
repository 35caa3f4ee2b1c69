func.func @main() attributes {a = 1.0 : f80} {
  tfrt.return
}
