// The first kernel that prints, for the time that a start takes.
func.func @main() -> !tfrt.chain {
  %start = tfrt.new.chain
  %number = tfrt.constant.i32 42
  %done = tfrt.print.i32 %number, %start
  tfrt.return %done : !tfrt.chain
}
