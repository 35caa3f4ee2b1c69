// RUN: run --print-error-code --max-memory 1M
// EXIT: 5

// CHECK-LABEL: --- Running 'no_file':
func.func @no_file() -> !tfrt.string {
  %path = tfrt_test.get_string {value = "/no/such/file"}
  %s = "tfrt_test.read_string_from_file"(%path) : (!tfrt.string) -> !tfrt.string
  tfrt.return %s : !tfrt.string
}
// CHECK-NEXT: 'no_file' returned <<error: failed to read from file /no/such/file, code: Unknown>>

// CHECK-LABEL: --- Running 'endless_file':
func.func @endless_file() -> !tfrt.string {
  %path = tfrt_test.get_string {value = "/dev/zero"}
  %s = "tfrt_test.read_string_from_file"(%path) : (!tfrt.string) -> !tfrt.string
  tfrt.return %s : !tfrt.string
}
// CHECK-NEXT: 'endless_file' returned <<error: failed to read from file /dev/zero, code: Unknown>>

// CHECK-LABEL: --- Running 'bad_format':
func.func @bad_format() -> !tfrt.string {
  %x = tfrt.constant.i32 1
  %f = tfrt_test.get_string {value = "%s"}
  %s = "tfrt_test.format_string"(%f, %x) : (!tfrt.string, i32) -> !tfrt.string
  tfrt.return %s : !tfrt.string
}
// CHECK-NEXT: 'bad_format' returned <<error: can't format one integer by '%s': 's' converts no integer, code: InvalidArgument>>

// CHECK-LABEL: --- Running 'wide_format':
func.func @wide_format() -> !tfrt.string {
  %x = tfrt.constant.i32 1
  %f = tfrt_test.get_string {value = "%2000000000d"}
  %s = "tfrt_test.format_string"(%f, %x) : (!tfrt.string, i32) -> !tfrt.string
  tfrt.return %s : !tfrt.string
}
// CHECK-NEXT: 'wide_format' returned <<error: a string exceeds the limit of {{[0-9]+}} bytes, code: ResourceExhausted>>

// A string that is doubled again and again ends in an error, not in the memory of the machine.
// CHECK-LABEL: --- Running 'doubled':
func.func @doubled() -> !tfrt.string {
  %n = tfrt.constant.i32 64
  %s = tfrt_test.get_string {value = "x"}
  %r = tfrt.repeat.i32 %n, %s : !tfrt.string {
    %t = "tfrt_test.append_string"(%s, %s) : (!tfrt.string, !tfrt.string) -> !tfrt.string
    tfrt.return %t : !tfrt.string
  }
  tfrt.return %r : !tfrt.string
}
// CHECK-NEXT: 'doubled' returned <<error: a string exceeds the limit of {{[0-9]+}} bytes, code: ResourceExhausted>>
