// RUN: run --print-error-code
// EXIT: 3

// CHECK-LABEL: --- Running 'dense':
func.func @dense() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %path = tfrt_test.get_string {value = "tests/execute/tensor/sample.btf"}
  %zero = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %three = tfrt.constant.i32 3
  %a = "btf.read_dense_tensor.i32.2"(%path, %zero) : (!tfrt.string, i32) -> !t.tensor
  // CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 2], values = [1, 2, 3, 4]
  %c1 = tfrt_dht.print_tensor %a, %c0
  %b = "btf.read_dense_tensor.ui8.1"(%path, %one) : (!tfrt.string, i32) -> !t.tensor
  // CHECK-NEXT: DenseHostTensor dtype = u8, shape = [3], values = [1, 128, 255]
  %c2 = tfrt_dht.print_tensor %b, %c1
  %c = "btf.read_dense_tensor.i64.0"(%path, %two) : (!tfrt.string, i32) -> !t.tensor
  // CHECK-NEXT: DenseHostTensor dtype = i64, shape = [], values = [-7]
  %c3 = tfrt_dht.print_tensor %c, %c2
  %d = "btf.read_dense_tensor.i8.2"(%path, %three) : (!tfrt.string, i32) -> !t.tensor
  // CHECK-NEXT: DenseHostTensor dtype = i8, shape = [0, 4], values = []
  %c4 = tfrt_dht.print_tensor %d, %c3
  tfrt.return %c4 : !tfrt.chain
}
// CHECK-NEXT: 'dense' returned

// CHECK-LABEL: --- Running 'sparse':
func.func @sparse() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %path = tfrt_test.get_string {value = "tests/execute/tensor/sample.btf"}
  %four = tfrt.constant.i32 4
  %a = "btf.read_coo_tensor.f32.2"(%path, %four) : (!tfrt.string, i32) -> !t.tensor
  // CHECK-NEXT: CooHostTensor dtype = f32, shape = [2, 3], indices = [0, 1, 1, 2], values = [1.500000e+00, -2.000000e+00]
  %c1 = tfrt_dht.print_tensor %a, %c0
  tfrt.return %c1 : !tfrt.chain
}
// CHECK: 'sparse' returned

// CHECK-LABEL: --- Running 'other_than_expected':
func.func @other_than_expected() -> (!t.tensor, !t.tensor, !t.tensor, !t.tensor) {
  %path = tfrt_test.get_string {value = "tests/execute/tensor/sample.btf"}
  %zero = tfrt.constant.i32 0
  %four = tfrt.constant.i32 4
  %a = "btf.read_dense_tensor.f32.1"(%path, %zero) : (!tfrt.string, i32) -> !t.tensor
  %b = "btf.read_dense_tensor.i32.1"(%path, %zero) : (!tfrt.string, i32) -> !t.tensor
  %c = "btf.read_coo_tensor.i32.2"(%path, %zero) : (!tfrt.string, i32) -> !t.tensor
  %d = "btf.read_dense_tensor.f32.2"(%path, %four) : (!tfrt.string, i32) -> !t.tensor
  tfrt.return %a, %b, %c, %d : !t.tensor, !t.tensor, !t.tensor, !t.tensor
}
// CHECK-NEXT: 'other_than_expected' returned <<error: unexpected tensor dtype i32. Expected dtype is f32, code: InvalidArgument>>,<<error: unexpected tensor rank 2. Expected rank is 1, code: InvalidArgument>>,<<error: unexpected tensor layout Row-Major Dense tensor, code: InvalidArgument>>,<<error: unexpected tensor layout COOrdinate list sparse tensor, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'not_there':
func.func @not_there() -> (!t.tensor, !t.tensor, !t.tensor, !t.tensor) {
  %path = tfrt_test.get_string {value = "tests/execute/tensor/sample.btf"}
  %no_file = tfrt_test.get_string {value = "tests/execute/tensor/no_such.btf"}
  %folder = tfrt_test.get_string {value = "tests/execute/tensor"}
  %zero = tfrt.constant.i32 0
  %five = tfrt.constant.i32 5
  %minus = tfrt.constant.i32 -1
  %a = "btf.read_dense_tensor.i32.2"(%no_file, %zero) : (!tfrt.string, i32) -> !t.tensor
  %b = "btf.read_dense_tensor.i32.2"(%folder, %zero) : (!tfrt.string, i32) -> !t.tensor
  %c = "btf.read_dense_tensor.i32.2"(%path, %five) : (!tfrt.string, i32) -> !t.tensor
  %d = "btf.read_dense_tensor.i32.2"(%path, %minus) : (!tfrt.string, i32) -> !t.tensor
  tfrt.return %a, %b, %c, %d : !t.tensor, !t.tensor, !t.tensor, !t.tensor
}
// CHECK-NEXT: 'not_there' returned <<error: failed to open file tests/execute/tensor/no_such.btf for reading, code: NotFound>>,<<error: failed to open file tests/execute/tensor for reading, code: NotFound>>,<<error: invalid tensor index 5 to read tensor from path tests/execute/tensor/sample.btf which contains 5 tensors, code: InvalidArgument>>,<<error: invalid tensor index -1 to read tensor from path tests/execute/tensor/sample.btf which contains 5 tensors, code: InvalidArgument>>

// A program is no file of tensors: its first bytes are read as a number of tensors.
// CHECK-LABEL: --- Running 'another_file':
func.func @another_file() -> !t.tensor {
  %path = tfrt_test.get_string {value = "tests/execute/tensor/files.mlir"}
  %zero = tfrt.constant.i32 0
  %a = "btf.read_dense_tensor.i32.2"(%path, %zero) : (!tfrt.string, i32) -> !t.tensor
  tfrt.return %a : !t.tensor
}
// CHECK-NEXT: 'another_file' returned <<error: failed to read tensor header from stream at offset {{[0-9]+}}, code: DataLoss>>
