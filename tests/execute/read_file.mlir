// RUN: run --queue single

// CHECK-LABEL: --- Running 'read':
func.func @read() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %path = tfrt_test.get_string {value = "tests/execute/read_file.mlir"}
  %s = "tfrt_test.read_string_from_file"(%path) : (!tfrt.string) -> !tfrt.string
  // CHECK-NEXT: string = // RUN: run --queue single
  %c1 = "tfrt_test.print_string"(%s, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
// CHECK: 'read' returned !tfrt.chain value
