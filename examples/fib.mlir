// RUN: run

// Fibonacci numbers by plain recursion: the two calls of each level need nothing of each other, so
// they may run side by side. `tfrt run examples/fib.mlir --function fib --arg 20` asks for others.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> i32 {
  %n = tfrt.constant.i32 15
  %result = tfrt.call @fib(%n) : (i32) -> (i32)
  tfrt.return %result : i32
}
// CHECK-NEXT: 'main' returned 610

func.func @fib(%n: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %small = "tfrt.lessequal.i32"(%n, %one) : (i32, i32) -> i1
  %result = tfrt.cond %small @itself @sum_of_two (%n) : (i32) -> (i32)
  tfrt.return %result : i32
}

func.func private @itself(%n: i32) -> i32 {
  tfrt.return %n : i32
}

func.func private @sum_of_two(%n: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %n1 = "tfrt.minus.i32"(%n, %one) : (i32, i32) -> i32
  %n2 = "tfrt.minus.i32"(%n, %two) : (i32, i32) -> i32
  %a = tfrt.call @fib(%n1) : (i32) -> (i32)
  %b = tfrt.call @fib(%n2) : (i32) -> (i32)
  %sum = tfrt.add.i32 %a, %b
  tfrt.return %sum : i32
}
// CHECK: --- Not running 'fib' because it has arguments.
