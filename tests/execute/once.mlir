// RUN: run

func.func @init(%x: i32) -> i32 {
  %ch = tfrt.new.chain
  %c = tfrt.print.i32 %x, %ch
  %y = "tfrt_test.async_copy.i32"(%x) : (i32) -> i32
  tfrt.return %y : i32
}

// The function runs for the first execution alone, whatever others pass to it.
// CHECK-LABEL: --- Running 'shared':
func.func @shared() -> (i32, i32, i32) {
  %1 = tfrt.constant.i32 1
  // CHECK-NEXT: int32 = 1
  %a = tfrt.once @init(%1) : (i32) -> (i32)
  %b = tfrt.add.i32 %a, %1
  %c = tfrt.once @init(%b) : (i32) -> (i32)
  %d = tfrt.add.i32 %c, %b
  %e = tfrt.once @init(%d) : (i32) -> (i32)
  tfrt.return %a, %c, %e : i32, i32, i32
}
// CHECK-NEXT: 'shared' returned 1,1,1

// Each function that the command runs has resources of its own.
// CHECK-LABEL: --- Running 'anew':
func.func @anew() -> i32 {
  %2 = tfrt.constant.i32 2
  // CHECK-NEXT: int32 = 2
  %a = tfrt.once @init(%2) : (i32) -> (i32)
  tfrt.return %a : i32
}
// CHECK-NEXT: 'anew' returned 2
