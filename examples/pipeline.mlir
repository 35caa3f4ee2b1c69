// RUN: run

// A pipeline of kernels that take their time. Each `async_add` returns at once with a value to
// come; whatever needs that value starts when it is there, and no thread waits meanwhile.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> (!tfrt.chain, i32) {
  %start = tfrt.new.chain
  %one = tfrt.constant.i32 1

  // Two branches that know nothing of each other.
  %a = "tfrt_test.async_add.i32"(%one, %one) : (i32, i32) -> i32
  %b = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
  %x = "tfrt_test.async_constant.i32"() {value = 10 : i32} : () -> i32
  %y = "tfrt_test.async_add.i32"(%x, %x) : (i32, i32) -> i32

  // They meet here.
  %sum = tfrt.add.i32 %b, %y

  // CHECK-NEXT: int32 = 4
  // CHECK-NEXT: int32 = 20
  // CHECK-NEXT: int32 = 24
  %c1 = tfrt.print.i32 %b, %start
  %c2 = tfrt.print.i32 %y, %c1
  %c3 = tfrt.print.i32 %sum, %c2
  tfrt.return %c3, %sum : !tfrt.chain, i32
}
// CHECK-NEXT: 'main' returned !tfrt.chain value,24
