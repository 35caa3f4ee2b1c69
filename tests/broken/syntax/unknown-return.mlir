func.func @main() {
  retrun
}
