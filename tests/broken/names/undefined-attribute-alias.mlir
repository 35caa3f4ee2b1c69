#value = 1 : i32
func.func @main() attributes {a = #vlaue} {
  tfrt.return
}
