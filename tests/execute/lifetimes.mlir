// RUN: run --queue single

// A value is destroyed after the kernel that uses it last.
// CHECK-LABEL: --- Running 'use':
func.func @use() -> !tfrt.chain {
  %ch0 = tfrt.new.chain
  // CHECK-NEXT: constructed vt.value(20)
  // CHECK-NEXT: move constructed vt.value(20)
  %a = "vt.constant"() {value = 20 : i32} : () -> !vt.value
  // CHECK-NEXT: print vt_value(20)
  %ch1 = "vt.print"(%a, %ch0) : (!vt.value, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: destroyed vt.value(20)
  tfrt.return %ch1 : !tfrt.chain
}
// CHECK-NEXT: 'use' returned !tfrt.chain value

// Both results of sharing are one value, and operands go in their order.
// CHECK-LABEL: --- Running 'share':
func.func @share() -> !tfrt.chain {
  %ch0 = tfrt.new.chain
  // CHECK-NEXT: constructed vt.value(3)
  // CHECK-NEXT: move constructed vt.value(3)
  %a = "vt.constant"() {value = 3 : i32} : () -> !vt.value
  %b, %c = "tfrt_test.share_to_two"(%a) : (!vt.value) -> (!vt.value, !vt.value)
  // CHECK-NEXT: constructed vt.value(6)
  // CHECK-NEXT: move constructed vt.value(6)
  %d = "vt.add"(%b, %c) : (!vt.value, !vt.value) -> !vt.value
  // CHECK-NEXT: destroyed vt.value(3)
  // CHECK-NEXT: print vt_value(6)
  %ch1 = "vt.print"(%d, %ch0) : (!vt.value, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: destroyed vt.value(6)
  tfrt.return %ch1 : !tfrt.chain
}
// CHECK-NEXT: 'share' returned !tfrt.chain value

// Loops drop the values of a turn before the next.
// CHECK-LABEL: --- Running 'loop':
func.func @loop() -> !tfrt.chain {
  %ch0 = tfrt.new.chain
  %n = tfrt.constant.i32 2
  // CHECK-NEXT: constructed vt.value(1)
  // CHECK-NEXT: move constructed vt.value(1)
  %a = "vt.constant"() {value = 1 : i32} : () -> !vt.value
  // CHECK-NEXT: constructed vt.value(2)
  // CHECK-NEXT: move constructed vt.value(2)
  // CHECK-NEXT: constructed vt.value(4)
  // CHECK-NEXT: move constructed vt.value(4)
  // CHECK-NEXT: destroyed vt.value(2)
  // CHECK-NEXT: destroyed vt.value(1)
  %b = tfrt.repeat.i32 %n, %a : !vt.value {
    %c = "vt.add"(%a, %a) : (!vt.value, !vt.value) -> !vt.value
    tfrt.return %c : !vt.value
  }
  // CHECK-NEXT: print vt_value(4)
  %ch1 = "vt.print"(%b, %ch0) : (!vt.value, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: destroyed vt.value(4)
  tfrt.return %ch1 : !tfrt.chain
}
// CHECK-NEXT: 'loop' returned !tfrt.chain value
