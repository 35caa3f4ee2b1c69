// RUN: run
// EXIT: 3

func.func private @native_sink(i32, i64) attributes {tfrt.native}
func.func private @native_async_sink(i32, i32) -> !tfrt.chain attributes {tfrt.native}
func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
func.func private @native_async_add(i32, i32) -> i32 attributes {tfrt.native}

// CHECK-LABEL: --- Running 'native':
func.func @native() -> (!tfrt.chain, i32, i32, !tfrt.chain) {
  %a = tfrt.constant.i32 20
  %b = "tfrt_test.async_constant.i32"() {value = 22 : i32} : () -> i32
  %long = tfrt.constant.i64 1
  tfrt.call @native_sink(%a, %long) : (i32, i64) -> ()
  %c = tfrt.call @native_async_sink(%a, %b) : (i32, i32) -> !tfrt.chain
  %d = tfrt.call @native_add(%a, %b) : (i32, i32) -> i32
  %e = tfrt.call @native_async_add(%d, %a) : (i32, i32) -> i32
  %zero = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %f = tfrt.parallel_call.i32 %zero to %a fixed %one @native_async_sink()
  tfrt.return %c, %d, %e, %f : !tfrt.chain, i32, i32, !tfrt.chain
}
// CHECK-NEXT: 'native' returned !tfrt.chain value,42,62,!tfrt.chain value

// A native function without parameters is run as any other.
// CHECK-LABEL: --- Running 'native_error':
func.func private @native_error() -> i32 attributes {tfrt.native}
// CHECK-NEXT: 'native_error' returned <<error: something bad happened>>
