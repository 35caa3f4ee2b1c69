// RUN: run --function train_step
func.func @main() -> i32 {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32
}
func.func @other() {
  tfrt.return
}
