// RUN: run

// CHECK-LABEL: --- Running 'merge':
func.func @merge() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = "tfrt_test.async_constant.i32"() {value = 5 : i32} : () -> i32
  %c1 = tfrt.merge.chains %c0, %x : !tfrt.chain, i32
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'merge' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'alias':
func.func @alias() -> i32 {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 8
  // CHECK-NEXT: int32 = 8
  %c1 = tfrt.print.i32 %x, %c0
  %y = "tfrt.alias.value"(%c1, %x) : (!tfrt.chain, i32) -> i32
  // CHECK-NEXT: int32 = 8
  %c2 = tfrt.print.i32 %y, %c1
  %z = "tfrt.alias.value"(%c2, %y) : (!tfrt.chain, i32) -> i32
  tfrt.return %z : i32
}
// CHECK-NEXT: 'alias' returned 8

// CHECK-LABEL: --- Running 'device':
func.func @device() -> !tfrt.device {
  %c0 = tfrt.new.chain
  %d = tfrt.get_device %c0 {device_name = "CPU:0"}
  tfrt.return %d : !tfrt.device
}
// CHECK-NEXT: 'device' returned !tfrt.device value
