// RUN: opt

// CHECK: func.func @sum(%[[A:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32) -> i32 {
// CHECK-NEXT: %[[SUM:[a-z0-9]+]] = tfrt.add.i32 %[[A]], %[[B]]
// CHECK-NEXT: tfrt.return %[[SUM]] : i32
// CHECK-NEXT: }
func.func @sum(%a: i32, %b: i32) -> i32 {
  %sum = "tfrt.add.i32"(%a, %b) : (i32, i32) -> i32
  "tfrt.return"(%sum) : (i32) -> ()
}
