// Every kind of attribute, shared and not.

func.func @main() {
  "my.scalars"() {a = true, b = -1 : i8, c = 2 : i16, d = 3 : i32, e = 4 : i64} : () -> ()
  "my.unsigned"() {a = 255 : ui8, b = 2 : ui16, c = 3 : ui32, d = 4 : ui64} : () -> ()
  "my.floats"() {a = 1.5 : bf16, b = 1.5 : f16, c = 1.5 : f32, d = 1.5 : f64} : () -> ()
  "my.strings"() {a = "", b = "text", c = "\FFbytes"} : () -> ()
  "my.types"() {a = i32, b = ui8, c = complex<f64>, d = [f32, i1]} : () -> ()
  "my.arrays"() {a = [], b = [1 : i32, 2 : i32], c = [1 : i64], d = [true, false, true]} : () -> ()
  "my.aggregates"() {a = [1 : i32, 2.5 : f32, "s"], b = [[1 : i64], ["x", []]]} : () -> ()
  "my.shapes"() {a = #corert.shape<1x?x3>, b = #corert.shape<*>, c = #corert.shape<>} : () -> ()
  "my.dense"() {a = dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>, b = dense<true> : tensor<3xi1>} : () -> ()
  "my.shared"() {one = 3 : i32, two = [1 : i32, 2 : i32], three = 4 : i32} : () -> ()
  tfrt.return
}
