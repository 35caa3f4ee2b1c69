// RUN: run --print-error-code
// EXIT: 5

// CHECK-LABEL: --- Running 'strings':
func.func @strings() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "tfrt_sht.create_tensor"() {shape = [2, 1], values = ["one", "two \22quoted\22"]} : () -> !t.tensor
  // CHECK-NEXT: StringHostTensor shape = [2, 1], values = ["one", "two "quoted""]
  %c1 = tfrt_dht.print_tensor %a, %c0
  %b = "tfrt_sht.create_tensor"() {shape = [0], values = []} : () -> !t.tensor
  // CHECK-NEXT: StringHostTensor shape = [0], values = []
  %c2 = tfrt_dht.print_tensor %b, %c1
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: 'strings' returned

// CHECK-LABEL: --- Running 'synchronous':
func.func @synchronous() attributes {tfrt.sync} {
  %a = "tfrt_sht_sync.create_tensor"() {shape = [], values = ["x"]} : () -> !t.tensor
  // CHECK-NEXT: StringHostTensor shape = [], values = ["x"]
  tfrt_dht_sync.print_tensor %a
  %b = "tfrt_sht_sync.create_uninitialized_tensor"() {shape = [2]} : () -> !t.tensor
  // CHECK-NEXT: StringHostTensor shape = [2], values = ["", ""]
  tfrt_dht_sync.print_tensor %b
  tfrt.return
}

// CHECK-LABEL: --- Running 'misused':
func.func @misused() -> (!t.tensor, !t.tensor, !t.tensor) {
  %a = "tfrt_sht.create_tensor"() {shape = [3], values = ["one", "two"]} : () -> !t.tensor
  %b = "tfrt_sht.create_tensor"() {shape = [2], values = ["one", 2 : i32]} : () -> !t.tensor
  %c = "tfrt_sht_sync.create_uninitialized_tensor"() {shape = [1099511627776]} : () -> !t.tensor
  tfrt.return %a, %b, %c : !t.tensor, !t.tensor, !t.tensor
}
// CHECK-NEXT: 'misused' returned <<error: Shape mismatch: 2 strings for a tensor of shape [3], code: InvalidArgument>>,<<error: value 1 is no string, code: InvalidArgument>>,<<error: Cannot allocate tensor of str [1099511627776], code: ResourceExhausted>>
