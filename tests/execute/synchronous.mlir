// RUN: run

// CHECK-LABEL: --- Running 'sums':
func.func @sums() -> (i32, i32, i32) attributes {tfrt.sync} {
  %1 = "tfrt.constant_s.i32"() {value = 1 : i32} : () -> i32
  %2 = "tfrt.constant_s.i32"() {value = 2 : i32} : () -> i32
  %a = "tfrt_test.sync_sum"(%1, %2, %2) : (i32, i32, i32) -> i32
  %b = "tfrt_test.sync_sum2"(%a) : (i32) -> i32
  %c = "tfrt_test.sync_sum_attributes"() {a = 1 : i32, b = 20 : i32, c = 300 : i32} : () -> i32
  tfrt.return %a, %b, %c : i32, i32, i32
}
// CHECK-NEXT: 'sums' returned 5,5,321

func.func @one(%a: i32, %b: i32) -> i32 attributes {tfrt.sync} {
  %c = "tfrt.add_s.i32"(%a, %b) : (i32, i32) -> i32
  tfrt.return %c : i32
}

func.func @two(%a: i32, %b: i32) -> (i32, i32) attributes {tfrt.sync} {
  %c = "tfrt.add_s.i32"(%a, %b) : (i32, i32) -> i32
  %d = tfrt.mul_s.i32 %a, %b
  tfrt.return %c, %d : i32, i32
}

// CHECK-LABEL: --- Running 'invoke':
func.func @invoke() -> (i32, i32, i32, i32, i32, i32) {
  %a = tfrt.constant.i32 5
  %b = "tfrt_test.async_constant.i32"() {value = 6 : i32} : () -> i32
  %0 = "tfrt_test.invoke_sync_function.i32_i32.i32"(%a, %b) {fn = @one} : (i32, i32) -> i32
  %1, %2 = "tfrt_test.invoke_sync_function.i32_i32.i32_i32"(%a, %b) {fn = @two} : (i32, i32) -> (i32, i32)
  %3 = "tfrt_test.sync_function_runner.i32_i32.i32"(%a, %b) {fn = @one} : (i32, i32) -> i32
  %4, %5 = "tfrt_test.sync_function_runner.i32_i32.i32_i32"(%a, %b) {fn = @two} : (i32, i32) -> (i32, i32)
  tfrt.return %0, %1, %2, %3, %4, %5 : i32, i32, i32, i32, i32, i32
}
// CHECK-NEXT: 'invoke' returned 11,11,30,11,11,30
