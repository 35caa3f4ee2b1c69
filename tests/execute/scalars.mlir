// RUN: run

// CHECK-LABEL: --- Running 'sums':
func.func @sums() -> (i32, i64, f32, f64, i32, i64) {
  %a = tfrt.constant.i32 2147483647
  %b = tfrt.constant.i64 -5
  %c = tfrt.constant.f32 0.5
  %d = tfrt.constant.f64 0.25
  %0 = tfrt.add.i32 %a, %a
  %1 = tfrt.add.i64 %b, %b
  %2 = tfrt.add.f32 %c, %c
  %3 = tfrt.add.f64 %d, %d
  %4 = "tfrt.minus.i32"(%0, %a) : (i32, i32) -> i32
  %5 = "tfrt.minus.i64"(%b, %1) : (i64, i64) -> i64
  tfrt.return %0, %1, %2, %3, %4, %5 : i32, i64, f32, f64, i32, i64
}
// CHECK-NEXT: 'sums' returned -2,-10,1.000000e+00,5.000000e-01,2147483647,5

// CHECK-LABEL: --- Running 'products':
func.func @products() -> (i32, i64, f32, f64) {
  %a = tfrt.constant.i32 65536
  %b = tfrt.constant.i64 65536
  %c = tfrt.constant.f32 1.5
  %d = tfrt.constant.f64 -1.5
  %0 = tfrt.mul.i32 %a, %a
  %1 = tfrt.mul.i64 %b, %b
  %2 = "tfrt.multiply.f32"(%c, %c) : (f32, f32) -> f32
  %3 = "tfrt.multiply.f64"(%d, %d) : (f64, f64) -> f64
  tfrt.return %0, %1, %2, %3 : i32, i64, f32, f64
}
// CHECK-NEXT: 'products' returned 0,4294967296,2.250000e+00,2.250000e+00

// CHECK-LABEL: --- Running 'quotients':
func.func @quotients() -> (i32, i32, i64, i64, i32, i32, f32, f64) {
  %a = tfrt.constant.i32 -7
  %b = tfrt.constant.i32 2
  %c = tfrt.constant.i64 7
  %d = tfrt.constant.i64 -2
  %min = tfrt.constant.i32 0x80000000
  %minus_one = tfrt.constant.i32 -1
  %e = tfrt.constant.f32 1.0
  %f = tfrt.constant.f32 4.0
  %g = tfrt.constant.f64 -9.0
  %h = tfrt.constant.f64 2.0
  %0, %1 = tfrt.div.i32 %a, %b
  %2, %3 = tfrt.div.i64 %c, %d
  %4, %5 = tfrt.div.i32 %min, %minus_one
  %6 = "tfrt.div.f32"(%e, %f) : (f32, f32) -> f32
  %7 = "tfrt.div.f64"(%g, %h) : (f64, f64) -> f64
  tfrt.return %0, %1, %2, %3, %4, %5, %6, %7 : i32, i32, i64, i64, i32, i32, f32, f64
}
// CHECK-NEXT: 'quotients' returned -3,-1,-3,1,-2147483648,0,2.500000e-01,-4.500000e+00

// CHECK-LABEL: --- Running 'comparisons':
func.func @comparisons() -> (i1, i1, i1, i1, i1, i1, f32, f64) {
  %a = tfrt.constant.i32 -1
  %b = tfrt.constant.i32 1
  %c = tfrt.constant.i64 5
  %d = tfrt.constant.f32 1.0
  %e = tfrt.constant.f32 -1.0
  %nan = tfrt.constant.f64 0x7FF8000000000000
  %f = tfrt.constant.f64 1.0
  %true = tfrt.constant.i1 true
  %0 = tfrt.equal.i32 %a, %b
  %1 = tfrt.equal.i64 %c, %c
  %2 = "tfrt.lessequal.i32"(%a, %b) : (i32, i32) -> i1
  %3 = "tfrt.lessequal.i64"(%c, %c) : (i64, i64) -> i1
  %4 = tfrt.and.i1 %0, %true
  %5 = tfrt.and.i1 %1, %true
  %6 = "tfrt.minimum.f32"(%d, %e) : (f32, f32) -> f32
  %7 = "tfrt.minimum.f64"(%f, %nan) : (f64, f64) -> f64
  tfrt.return %0, %1, %2, %3, %4, %5, %6, %7 : i1, i1, i1, i1, i1, i1, f32, f64
}
// CHECK-NEXT: 'comparisons' returned 0,1,1,1,0,1,-1.000000e+00,1.000000e+00

// CHECK-LABEL: --- Running 'casts':
func.func @casts() -> (f32, f64, i64, i64, i64, i64) {
  %a = tfrt.constant.i64 16777217
  %b = tfrt.constant.f32 -2.75
  %c = tfrt.constant.f64 255.99
  %huge = tfrt.constant.f64 1.0e300
  %nan = tfrt.constant.f32 0x7FC00000
  %0 = "tfrt.cast.i64_to_f32"(%a) : (i64) -> f32
  %1 = "tfrt.cast.i64_to_f64"(%a) : (i64) -> f64
  %2 = "tfrt.cast.f32_to_i64"(%b) : (f32) -> i64
  %3 = "tfrt.cast.f64_to_i64"(%c) : (f64) -> i64
  %4 = "tfrt.cast.f64_to_i64"(%huge) : (f64) -> i64
  %5 = "tfrt.cast.f32_to_i64"(%nan) : (f32) -> i64
  tfrt.return %0, %1, %2, %3, %4, %5 : f32, f64, i64, i64, i64, i64
}
// CHECK-NEXT: 'casts' returned 1.677722e+07,1.677722e+07,-2,255,9223372036854775807,0

// CHECK-LABEL: --- Running 'in_order':
func.func @in_order() -> (i32, i64) attributes {tfrt.sync} {
  %a = "tfrt.constant_s.i32"() {value = 6 : i32} : () -> i32
  %b = tfrt.constant_s.i64 7
  %c = "tfrt.add_s.i32"(%a, %a) : (i32, i32) -> i32
  %d = "tfrt.add_s.i64"(%b, %b) : (i64, i64) -> i64
  %e = tfrt.mul_s.i32 %c, %a
  %f = tfrt.mul_s.i64 %d, %b
  tfrt.return %e, %f : i32, i64
}
// CHECK-NEXT: 'in_order' returned 72,98
