// RUN: run
// EXIT: 3

// CHECK-LABEL: --- Running 'merge':
func.func @merge() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = "tfrt_test.fail"() : () -> i32
  %c1 = tfrt.merge.chains %c0, %x : !tfrt.chain, i32
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'merge' returned <<error: something bad happened>>

// CHECK-LABEL: --- Running 'device':
func.func @device() -> !tfrt.device {
  %c0 = tfrt.new.chain
  %d = tfrt.get_device %c0 {device_name = "GPU:7"}
  tfrt.return %d : !tfrt.device
}
// CHECK-NEXT: 'device' returned <<error: cannot find device GPU:7>>
