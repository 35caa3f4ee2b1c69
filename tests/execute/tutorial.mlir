// RUN: run

// CHECK-LABEL: --- Running 'point':
func.func @point() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 -3
  %y = tfrt.constant.i32 9
  %p = "tfrt_tutorial.create_coordinate"(%x, %y) : (i32, i32) -> !my.coordinate
  // CHECK-NEXT: (-3, 9)
  %c1 = "tfrt_tutorial.print_coordinate"(%p, %c0) : (!my.coordinate, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'point' returned !tfrt.chain value
