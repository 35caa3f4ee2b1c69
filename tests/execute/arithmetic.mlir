// RUN: run

// CHECK-LABEL: --- Running 'main':
func.func @main() -> i32 {
  %x   = tfrt.constant.i32 41
  %one = tfrt.constant.i32 1
  %y   = tfrt.add.i32 %x, %one
  %ch0 = tfrt.new.chain
  // CHECK-NEXT: int32 = 42
  %ch1 = tfrt.print.i32 %y, %ch0
  tfrt.return %y : i32
}
// CHECK-NEXT: 'main' returned 42
