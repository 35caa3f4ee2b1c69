func.func @main() {
}
