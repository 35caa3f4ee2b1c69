// RUN: run --print-error-code
// EXIT: 3

// Both results of a division are the error, and what uses them does not run.
// CHECK-LABEL: --- Running 'integers':
func.func @integers() -> (i32, i64) {
  %zero = tfrt.constant.i32 0
  %long_zero = tfrt.constant.i64 0
  %one = tfrt.constant.i32 1
  %q, %r = tfrt.div.i32 %one, %zero
  %s, %t = tfrt.div.i64 %long_zero, %long_zero
  %sum = tfrt.add.i32 %r, %one
  tfrt.return %sum, %t : i32, i64
}
// CHECK-NEXT: 'integers' returned <<error: Divide by zero, code: Unknown>>,<<error: Divide by zero, code: Unknown>>

// CHECK-LABEL: --- Running 'floats':
func.func @floats() -> (f32, f64) {
  %a = tfrt.constant.f32 0.0
  %b = tfrt.constant.f64 -0.0
  %c = "tfrt.div.f32"(%a, %a) : (f32, f32) -> f32
  %d = "tfrt.div.f64"(%b, %b) : (f64, f64) -> f64
  tfrt.return %c, %d : f32, f64
}
// CHECK-NEXT: 'floats' returned <<error: Divide by zero, code: Unknown>>,<<error: Divide by zero, code: Unknown>>
