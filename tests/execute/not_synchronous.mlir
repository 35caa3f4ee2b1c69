// RUN: run --max-depth 100
// EXIT: 3

func.func @later(%a: i32, %b: i32) -> i32 {
  tfrt.return %a : i32
}

// CHECK-LABEL: --- Running 'not_synchronous':
func.func @not_synchronous() -> i32 {
  %a = tfrt.constant.i32 5
  %b = "tfrt_test.invoke_sync_function.i32_i32.i32"(%a, %a) {fn = @later} : (i32, i32) -> i32
  tfrt.return %b : i32
}
// CHECK-NEXT: 'not_synchronous' returned <<error: 'later' is not a synchronous function>>
