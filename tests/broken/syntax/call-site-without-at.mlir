func.func @main() {
  tfrt.return loc(callsite("a" "b"))
}
