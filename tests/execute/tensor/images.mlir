// RUN: run

// An image in a message, as it is handed to a network. The image is 16 pixels wide and 8 high; its red grows by 16
// to the right, its green by 30 downwards.

// CHECK-LABEL: --- Running 'from_message':
func.func @from_message() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %path = tfrt_test.get_string {value = "tests/execute/tensor/example.pb"}
  %bytes = "tfrt_test.read_bytes_from_file"(%path) : (!tfrt.string) -> !tfrt.string
  %message = tfrt_test.parse_example_from_bytes %bytes
  %label_key = tfrt_test.get_string {value = "label"}
  %label = tfrt_test.get_int64_field_from_example %message, %label_key
  // CHECK-NEXT: int64 = 7
  %c1 = tfrt.print.i64 %label, %c0
  %image_key = tfrt_test.get_string {value = "image"}
  %data = tfrt_test.get_bytes_field_from_example %message, %image_key
  %image = tfrt_test.decode_jpeg %data
  // CHECK-NEXT: DenseHostTensor dtype = u8, shape = [8, 16, 3], values = [{{[0-3], [0-3], 12[6-9], 1[4-8], [0-3], 12[6-9], 3[0-4], [0-3], 12[6-9],}}
  %c2 = tfrt_dht.print_tensor %image, %c1
  %height = tfrt.constant.i64 2
  %width = tfrt.constant.i64 2
  %scaled = tfrt_test.resize_bilinear %image, %height, %width
  // The pixels at 0 and 8 of a row, in the rows 0 and 4.
  // CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2, 2, 3], values = [{{[0-3]\..*, [0-3]\..*, 1\.2[6-9].*, 1\.[23].*e\+02, .*, 1\.2[6-9].*, .*, 1\.[12].*e\+02, 1\.2[6-9].*, 1\.[23].*e\+02, 1\.[12].*e\+02, 1\.2[6-9].*}}]
  %c3 = tfrt_dht.print_tensor %scaled, %c2
  tfrt.return %c3 : !tfrt.chain
}

// One channel becomes three that are alike; this image comes in several scans.
// CHECK-LABEL: --- Running 'gray':
func.func @gray() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %path = tfrt_test.get_string {value = "tests/execute/tensor/gray.jpg"}
  %bytes = "tfrt_test.read_bytes_from_file"(%path) : (!tfrt.string) -> !tfrt.string
  %image = tfrt_test.decode_jpeg %bytes
  // CHECK-NEXT: DenseHostTensor dtype = u8, shape = [8, 16, 3], values = [15, 15, 15, 20, 20, 20, 24, 24, 24,
  %c1 = tfrt_dht.print_tensor %image, %c0
  tfrt.return %c1 : !tfrt.chain
}
