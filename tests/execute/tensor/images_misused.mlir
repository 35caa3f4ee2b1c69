// RUN: run
// EXIT: 3

// CHECK-LABEL: --- Running 'no_image':
// CHECK: 'no_image' returned <<error: image does not have jpeg format>>
func.func @no_image() -> !t.tensor {
  %data = tfrt_test.get_string {value = "a picture"}
  %image = tfrt_test.decode_jpeg %data
  tfrt.return %image : !t.tensor
}

// CHECK-LABEL: --- Running 'text':
// CHECK: 'text' returned <<error: expected a string of bytes, found characters that are none>>
func.func @text() -> !t.tensor {
  %data = tfrt_test.get_string {value = "π"}
  %image = tfrt_test.decode_jpeg %data
  tfrt.return %image : !t.tensor
}

// CHECK-LABEL: --- Running 'damaged':
// CHECK: 'damaged' returned <<error: failed to decode jpeg>>
func.func @damaged() -> !t.tensor {
  %data = tfrt_test.get_string {value = "ÿØÿà and nothing more"}
  %image = tfrt_test.decode_jpeg %data
  tfrt.return %image : !t.tensor
}

// CHECK-LABEL: --- Running 'no_message':
// CHECK: 'no_message' returned <<error: failed to parse example.proto from string>>
func.func @no_message() -> !proto.example {
  %data = tfrt_test.get_string {value = "hello"}
  %message = tfrt_test.parse_example_from_bytes %data
  tfrt.return %message : !proto.example
}

// A message without anything is one.
// CHECK-LABEL: --- Running 'no_key':
// CHECK: 'no_key' returned <<error: key label is not found in the proto>>
func.func @no_key() -> i64 {
  %data = tfrt_test.get_string {value = ""}
  %message = tfrt_test.parse_example_from_bytes %data
  %key = tfrt_test.get_string {value = "label"}
  %label = tfrt_test.get_int64_field_from_example %message, %key
  tfrt.return %label : i64
}

// CHECK-LABEL: --- Running 'no_file':
// CHECK: 'no_file' returned <<error: failed to read from file tests/execute/tensor/none.jpg>>
func.func @no_file() -> !tfrt.string {
  %path = tfrt_test.get_string {value = "tests/execute/tensor/none.jpg"}
  %data = "tfrt_test.read_bytes_from_file"(%path) : (!tfrt.string) -> !tfrt.string
  tfrt.return %data : !tfrt.string
}

// CHECK-LABEL: --- Running 'shape':
// CHECK: 'shape' returned <<error: resize_bilinear expects an image of 3 dimensions, found shape [2, 2]>>
func.func @shape() -> !t.tensor {
  %two = tfrt.constant.i64 2
  %image = tfrt_dht.create_uninitialized_tensor.ui8.2 [2 : i64, 2 : i64]
  %scaled = tfrt_test.resize_bilinear %image, %two, %two
  tfrt.return %scaled : !t.tensor
}

// CHECK-LABEL: --- Running 'size':
// CHECK: 'size' returned <<error: {{.*}}-1
func.func @size() -> !t.tensor {
  %two = tfrt.constant.i64 2
  %less = tfrt.constant.i64 -1
  %image = tfrt_dht.create_uninitialized_tensor.ui8.3 [2 : i64, 2 : i64, 3 : i64]
  %scaled = tfrt_test.resize_bilinear %image, %two, %less
  tfrt.return %scaled : !t.tensor
}

// CHECK-LABEL: --- Running 'elements':
// CHECK: 'elements' returned <<error: expected a tensor of u8, found one of f32 [2, 2, 3]>>
func.func @elements() -> !t.tensor {
  %two = tfrt.constant.i64 2
  %image = tfrt_dht.create_uninitialized_tensor.f32.3 [2 : i64, 2 : i64, 3 : i64]
  %scaled = tfrt_test.resize_bilinear %image, %two, %two
  tfrt.return %scaled : !t.tensor
}
