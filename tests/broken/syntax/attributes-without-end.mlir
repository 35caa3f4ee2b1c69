func.func @main() attributes {a = 1
