// RUN: run

// CHECK-LABEL: --- Running 'double':
func.func @double() -> (i32, f32) {
  %n = tfrt.constant.i32 10
  %x = tfrt.constant.i32 1
  %y = tfrt.constant.f32 0.5
  %a, %b = tfrt.repeat.i32 %n, %x, %y : i32, f32 {
    %xx = tfrt.add.i32 %x, %x
    %yy = tfrt.add.f32 %y, %y
    tfrt.return %xx, %yy : i32, f32
  }
  tfrt.return %a, %b : i32, f32
}
// CHECK-NEXT: 'double' returned 1024,5.120000e+02

// More than one block of 32 turns, each of which waits.
// CHECK-LABEL: --- Running 'later':
func.func @later() -> i32 {
  %n = tfrt.constant.i32 100
  %x = tfrt.constant.i32 0
  %a = tfrt.repeat.i32 %n, %x : i32 {
    %one = tfrt.constant.i32 1
    %y = "tfrt_test.async_add.i32"(%x, %one) : (i32, i32) -> i32
    tfrt.return %y : i32
  }
  tfrt.return %a : i32
}
// CHECK-NEXT: 'later' returned 100

// CHECK-LABEL: --- Running 'zero':
func.func @zero() -> i32 {
  %n = tfrt.constant.i32 0
  %a = tfrt.repeat.i32 %n, %n : i32 {
    %x = "tfrt_test.fail"() : () -> i32
    tfrt.return %x : i32
  }
  tfrt.return %a : i32
}
// CHECK-NEXT: 'zero' returned 0

// Nothing orders the turns of a loop without values but their effects.
// CHECK-LABEL: --- Running 'without_values':
func.func @without_values() {
  %n = tfrt.constant.i32 3
  tfrt.repeat.i32 %n {
    %ch = tfrt.new.chain
    %c = "tfrt_test.print_hello"(%ch) : (!tfrt.chain) -> !tfrt.chain
    tfrt.return
  }
  tfrt.return
}
// CHECK-NEXT: hello host executor!
// CHECK-NEXT: hello host executor!
// CHECK-NEXT: hello host executor!

// CHECK-LABEL: --- Running 'nested':
func.func @nested() -> i32 {
  %n = tfrt.constant.i32 40
  %x = tfrt.constant.i32 0
  %a, %m = tfrt.repeat.i32 %n, %x, %n : i32, i32 {
    %b = tfrt.repeat.i32 %n, %x : i32 {
      %one = tfrt.constant.i32 1
      %y = tfrt.add.i32 %x, %one
      tfrt.return %y : i32
    }
    tfrt.return %b, %n : i32, i32
  }
  tfrt.return %a : i32
}
// CHECK-NEXT: 'nested' returned 1600
