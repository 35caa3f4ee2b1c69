func.func @main() {
		"my.op"() {a =	, b = 1} : () -> ()
  tfrt.return
}
