func.func @main() {
  tfrt.return loc(#here)
}
