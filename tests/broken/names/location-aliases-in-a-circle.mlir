func.func @main() {
  tfrt.return loc(#a)
}
#a = loc("a"(#b))
#b = loc("b"(#a))
