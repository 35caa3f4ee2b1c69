// RUN: run --print-error-code
// EXIT: 3

// CHECK-LABEL: --- Running 'misused':
func.func @misused() -> (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.i32.2 [2 : i64, 2 : i64]
  %s, %c1 = coo.convert_dht_to_coo.i32.1 %a, %c0
  %t, %c2 = coo.convert_dht_to_coo.f32.2 %a, %c0
  %u, %c3 = coo.convert_coo_to_dht.i32.2 %a, %c0
  %c4 = coo.print_tensor %a, %c0
  tfrt.return %s, %t, %u, %c4 : !t.tensor, !t.tensor, !t.tensor, !tfrt.chain
}
// CHECK-NEXT: 'misused' returned <<error: expected a tensor of 1 dimensions, found one of i32 [2, 2], code: InvalidArgument>>,<<error: expected a tensor of f32, found one of i32 [2, 2], code: InvalidArgument>>,<<error: expected a CooHost tensor, found a DenseHost tensor of i32 [2, 2], code: InvalidArgument>>,<<error: expected a CooHost tensor, found a DenseHost tensor of i32 [2, 2], code: InvalidArgument>>
