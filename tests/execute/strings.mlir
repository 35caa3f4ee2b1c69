// RUN: run

// CHECK-LABEL: --- Running 'strings':
func.func @strings() -> (!tfrt.string, i1, i1) {
  %c0 = tfrt.new.chain
  %hello = tfrt_test.get_string {value = "hello"}
  %world = "tfrt_test.get_string"() {value = ", world"} : () -> !tfrt.string
  %both = "tfrt_test.append_string"(%hello, %world) : (!tfrt.string, !tfrt.string) -> !tfrt.string
  // CHECK-NEXT: string = hello
  %c1 = "tfrt_test.print_string"(%hello, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: string = hello, world
  %c2 = "tfrt_test.print_string"(%both, %c1) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  %same = "tfrt_test.string_equal"(%both, %both, %c2) : (!tfrt.string, !tfrt.string, !tfrt.chain) -> i1
  %other = "tfrt_test.string_equal"(%hello, %world, %c2) : (!tfrt.string, !tfrt.string, !tfrt.chain) -> i1
  tfrt.return %both, %same, %other : !tfrt.string, i1, i1
}
// CHECK-NEXT: 'strings' returned !tfrt.string value,1,0

// CHECK-LABEL: --- Running 'formats':
func.func @formats() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 -42
  %f = tfrt_test.get_string {value = "%08d|%% done"}
  %g = tfrt_test.get_string {value = "<%#-12X>"}
  %a = "tfrt_test.format_string"(%f, %x) : (!tfrt.string, i32) -> !tfrt.string
  %b = "tfrt_test.format_string"(%g, %x) : (!tfrt.string, i32) -> !tfrt.string
  // CHECK-NEXT: string = -0000042|% done
  %c1 = "tfrt_test.print_string"(%a, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: string = <0XFFFFFFD6  >
  %c2 = "tfrt_test.print_string"(%b, %c1) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'formats' returned !tfrt.chain value

// CHECK-LABEL: --- Running 'in_order':
func.func @in_order() -> !tfrt.string attributes {tfrt.sync} {
  %s = tfrt_test.get_string_sync {value = "hi"}
  tfrt.return %s : !tfrt.string
}
// CHECK-NEXT: 'in_order' returned !tfrt.string value
