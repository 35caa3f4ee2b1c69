// RUN: opt --generic

// CHECK: "func.func"() {{.*}}({
// CHECK: %[[SUM:[a-z0-9]+]] = "tfrt.add.i32"(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) : (i32, i32) -> i32
// CHECK-NEXT: "tfrt.return"(%[[SUM]]) : (i32) -> ()
func.func @sum(%a: i32, %b: i32) -> i32 {
  %sum = tfrt.add.i32 %a, %b
  tfrt.return %sum : i32
}
