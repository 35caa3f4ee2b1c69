// RUN: run

func.func @inc(%x: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %y = tfrt.add.i32 %x, %one
  tfrt.return %y : i32
}

func.func @twice(%x: i32) -> (i32, i32) {
  %y = tfrt.call @inc(%x) : (i32) -> i32
  %z = tfrt.call @inc(%y) : (i32) -> i32
  tfrt.return %y, %z : i32, i32
}

func.func @later(%x: i32) -> i32 {
  %y = "tfrt_test.async_copy.i32"(%x) : (i32) -> i32
  tfrt.return %y : i32
}

// CHECK-LABEL: --- Running 'call':
func.func @call() -> (i32, i32, i32) {
  %x = tfrt.constant.i32 40
  %a:2 = tfrt.call @twice(%x) : (i32) -> (i32, i32)
  %b = tfrt.call @later(%a#1) : (i32) -> i32
  tfrt.return %a#0, %a#1, %b : i32, i32, i32
}
// CHECK-NEXT: 'call' returned 41,42,42

// CHECK-LABEL: --- Running 'if':
func.func @if() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %false = "tfrt_test.async_constant.i1"() {value = false} : () -> i1
  %x = tfrt.constant.i32 1
  %y = tfrt.constant.i32 2
  %a = tfrt.if %true, %x, %y : (i32, i32) -> (i32) {
    tfrt.return %x : i32
  } else {
    tfrt.return %y : i32
  }
  %b = tfrt.if %false, %x, %y : (i32, i32) -> (i32) {
    tfrt.return %x : i32
  } else {
    %z = tfrt.add.i32 %y, %y
    tfrt.return %z : i32
  }
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'if' returned 1,4

// CHECK-LABEL: --- Running 'if_without_results':
func.func @if_without_results() {
  %true = tfrt.constant.i1 true
  %false = tfrt.constant.i1 false
  %x = tfrt.constant.i32 3
  %ch = tfrt.new.chain
  // CHECK-NEXT: int32 = 3
  tfrt.if %true, %x, %ch : (i32, !tfrt.chain) -> () {
    %c = tfrt.print.i32 %x, %ch
    tfrt.return
  }
  tfrt.if %false, %x, %ch : (i32, !tfrt.chain) -> () {
    %c = tfrt.print.i32 %x, %ch
    tfrt.return
  }
  tfrt.return
}

// CHECK-LABEL: --- Running 'cond':
func.func @cond() -> (i32, i32) {
  %true = tfrt.constant.i1 true
  %false = tfrt.constant.i1 false
  %x = tfrt.constant.i32 10
  %a = tfrt.cond %true @inc @later (%x) : (i32) -> (i32)
  %b = tfrt.cond %false @inc @later (%x) : (i32) -> (i32)
  tfrt.return %a, %b : i32, i32
}
// CHECK-NEXT: 'cond' returned 11,10

// CHECK-LABEL: --- Running 'case':
func.func @case() -> (i32, i32, i32) {
  %0 = tfrt.constant.i32 0
  %1 = tfrt.constant.i32 1
  %2 = tfrt.constant.i32 2
  %a = tfrt.case %0 [@inc, @later, @inc] (%2) : (i32) -> (i32)
  %b = tfrt.case %1 [@inc, @later, @inc] (%2) : (i32) -> (i32)
  %c = tfrt.case %2 [@inc, @later, @inc] (%2) : (i32) -> (i32)
  tfrt.return %a, %b, %c : i32, i32, i32
}
// CHECK-NEXT: 'case' returned 3,2,3
