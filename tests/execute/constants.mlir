// RUN: run

// Every constant has a kernel; those that can be printed are.
// CHECK-LABEL: --- Running 'constants':
func.func @constants() -> (i1, i32, i64, f32, f64) {
  %ch0 = tfrt.new.chain
  %i1 = tfrt.constant.i1 true
  %i32 = tfrt.constant.i32 -7
  %i64 = tfrt.constant.i64 77777777777
  %f32 = tfrt.constant.f32 0.1
  %f64 = tfrt.constant.f64 -15000000000.0
  %f16 = tfrt.constant.f16 1.5
  %c64 = tfrt.constant.complex64 1.5, -2.0
  %c128 = tfrt.constant.complex128 -0.25, 3.0
  // CHECK-NEXT: int1 = 1
  %ch1 = tfrt.print.i1 %i1, %ch0
  // CHECK-NEXT: int32 = -7
  %ch2 = tfrt.print.i32 %i32, %ch1
  // CHECK-NEXT: int64 = 77777777777
  %ch3 = tfrt.print.i64 %i64, %ch2
  // CHECK-NEXT: f32 = 0.100000
  %ch4 = tfrt.print.f32 %f32, %ch3
  // CHECK-NEXT: f64 = -15000000000.000000
  %ch5 = tfrt.print.f64 %f64, %ch4
  // CHECK-NEXT: f16 = 15872
  %ch6 = "tfrt.print.f16"(%f16, %ch5) : (f16, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: complex64 = 1.500000+-2.000000i
  %ch7 = "tfrt.print.complex64"(%c64, %ch6) : (complex<f32>, !tfrt.chain) -> !tfrt.chain
  // CHECK-NEXT: complex128 = -0.250000+3.000000i
  %ch8 = "tfrt.print.complex128"(%c128, %ch7) : (complex<f64>, !tfrt.chain) -> !tfrt.chain
  %all, %b0, %b1, %b2, %b3, %b4 = "tfrt_test.identity"(%ch8, %ch8, %i1, %i32, %i64, %f32, %f64)
    : (!tfrt.chain, !tfrt.chain, i1, i32, i64, f32, f64) -> (!tfrt.chain, i1, i32, i64, f32, f64)
  tfrt.return %b0, %b1, %b2, %b3, %b4 : i1, i32, i64, f32, f64
}
// CHECK-NEXT: 'constants' returned 1,-7,77777777777,1.000000e-01,-1.500000e+10

// CHECK-LABEL: --- Running 'unsigned':
func.func @unsigned() -> (ui32, ui64, bf16, f16) {
  %a = tfrt.constant.ui32 4294967295
  %b = tfrt.constant.ui64 18446744073709551615
  %c = tfrt.constant.bf16 2.0
  %d = tfrt.constant.f16 -0.5
  tfrt.return %a, %b, %c, %d : ui32, ui64, bf16, f16
}
// CHECK-NEXT: 'unsigned' returned ui32 value,ui64 value,bf16 value,f16 value

// Infinities and what is no number print as C prints them.
// CHECK-LABEL: --- Running 'special':
func.func @special() {
  %ch0 = tfrt.new.chain
  %inf = tfrt.constant.f32 0x7F800000
  %minus_inf = tfrt.constant.f64 0xFFF0000000000000
  %nan = tfrt.constant.f32 0x7FC00000
  %minus_nan = tfrt.constant.f64 0xFFF8000000000000
  %minus_zero = tfrt.constant.f64 -0.0
  %large = tfrt.constant.f32 3.0e38
  // CHECK-NEXT: f32 = inf
  %ch1 = tfrt.print.f32 %inf, %ch0
  // CHECK-NEXT: f64 = -inf
  %ch2 = tfrt.print.f64 %minus_inf, %ch1
  // CHECK-NEXT: f32 = nan
  %ch3 = tfrt.print.f32 %nan, %ch2
  // CHECK-NEXT: f64 = -nan
  %ch4 = tfrt.print.f64 %minus_nan, %ch3
  // CHECK-NEXT: f64 = -0.000000
  %ch5 = tfrt.print.f64 %minus_zero, %ch4
  // CHECK-NEXT: f32 = 300000000549775575777803994281145270272.000000
  %ch6 = tfrt.print.f32 %large, %ch5
  tfrt.return
}

// CHECK-LABEL: --- Running 'in_order':
func.func @in_order() -> (i32, i64, f32, f64, bf16, f16) attributes {tfrt.sync} {
  %a = "tfrt.constant_s.i32"() {value = 1 : i32} : () -> i32
  %b = tfrt.constant_s.i64 2
  %c = tfrt.constant_s.f32 3.0
  %d = tfrt.constant_s.f64 4.0
  %e = "tfrt.constant_s.bf16"() {value = 5.0 : bf16} : () -> bf16
  %f = tfrt.constant_s.f16 6.0
  tfrt.return %a, %b, %c, %d, %e, %f : i32, i64, f32, f64, bf16, f16
}
// CHECK-NEXT: 'in_order' returned 1,2,3.000000e+00,4.000000e+00,bf16 value,f16 value
