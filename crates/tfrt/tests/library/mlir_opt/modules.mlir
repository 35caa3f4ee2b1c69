"x.op"() : () -> () loc(fused<"m">[])
// -----
"x.op"() : () -> () loc(fused[])
// -----
"x.op"() : () -> () loc(fused<"m">[unknown, "a"])
// -----
"x.op"() : () -> () loc(fused<"m">[fused<"m">["b"], "a"])
// -----
"x.op"() : () -> () loc(callsite(unknown at "a"))
// -----
"x.op"() : () -> () loc("a"(unknown))
// -----
"x.op"() : () -> () loc("a"(callsite("b" at fused["c", "d"])))
// -----
"x.op"() : () -> () loc("a":4294967295:1)
// -----
"x.op"() : () -> () loc("a\00b")
// -----
"x.op"() : () -> () loc("")
// -----
"x.op"() {a = dense_resource<blob> : tensor<2xi32>} : () -> () {-# dialect_resources: { builtin: { blob: "0x040000000100000002000000" } } #-}
// -----
"x.op"() {a = 1 : i32} : () -> () {-# external_resources: { mlir_reproducer: { verify_each: true } } #-}
// -----
"func.func"() ({}) {sym_name = "f", function_type = () -> (), sym_visibility = "private"} : () -> ()
// -----
func.func @f() { "tfrt.br"()[^bb1] : () -> () ^bb1: tfrt.return }
// -----
func.func @f() attributes {tfrt.cost_threshold = 10 : i64, sym = 1} { tfrt.return }
// -----
module attributes {tfrt.a} {}
// -----
"x.op"() ({ func.func @f() { tfrt.return } }) : () -> ()
// -----
func.func @f() { "x.op"() ({ tfrt.return }) : () -> () tfrt.return }
// -----
func.func @f(%n: i32) { tfrt.repeat.i32 %n { tfrt.return } tfrt.return }
// -----
func.func @f(%a: memref<?xf32>) attributes {tfrt.native} { tfrt.return }
// -----
func.func @f(%x: i32) { %c = tfrt_test.benchmark "a"(%x : i32) duration_secs = 1, max_count = 2 { tfrt.return %x : i32 } tfrt.return }
// -----
func.func @f() { %0 = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32> tfrt.return }
// -----
func.func @f() { %0 = "corert.x"() {a = #corert.shape<2x?>, b = #corert.shape<*>} : () -> !corert.tensorhandle tfrt.return }
// -----
func.func @f() { %0 = tfrt.constant.complex64 1.0, 2.0 %1 = tfrt.constant.f64 0x7FF8000000000001 tfrt.return }
// -----
func.func @f() { %0 = tfrt_test.get_string {value = "a\22\0Ab\\"} tfrt.return }
// -----
module @a { func.func private @b() } func.func private @b()
// -----
"test.foo"() : () -> ()
// -----
"x.op"() {test.a = 1 : i32} : () -> ()
// -----
"x.op"() {"quoted key" = 1, a.b = 2, _c$ = 3} : () -> ()
// -----
"x.op"() {"1" = 1} : () -> ()
// -----
"x.op"() {"a-b"} : () -> ()
// -----
"x.op"() : () -> () loc(unknown)
// -----
"x.op"() : () -> () loc("n")
// -----
"x.op"() : () -> () loc("n"("f":1:2))
// -----
"x.op"() : () -> () loc(callsite("n"("f":1:2) at "g":3:4))
// -----
"x.op"() : () -> () loc(fused["f":1:2, "g":3:4])
// -----
"x.op"() : () -> () loc(fused<"m">["f":1:2, "g":3:4])
// -----
"x.op"() : () -> () loc(fused<1 : i32>["f":1:2])
// -----
"x.op"() : () -> () loc(fused<#my.a>[unknown])
// -----
"x.op"() : () -> () loc("a \22 \\ b":1:2)
// -----
"x.op"() : () -> () loc("ä":1:2)
// -----
"x.op"() ({}) : () -> ()
// -----
"x.op"() ({}, {}) : () -> ()
// -----
"x.op"() ({^bb0(%a: i32): "y.op"(%a) : (i32) -> ()}) : () -> ()
// -----
"x.op"() ({^bb0(%a: i32 loc("here")): "y.op"(%a) : (i32) -> ()}) : () -> ()
// -----
"x.op"() ({^bb0:}) : () -> ()
// -----
"x.op"() ({"y.br"()[^bb1] : () -> () ^bb1: "y.ret"() : () -> ()}) : () -> ()
// -----
"x.op"() ({%0 = "y.c"() : () -> i32 "y.br"(%0)[^bb1, ^bb2] : (i32) -> () ^bb1: "y.br"()[^bb2] : () -> () ^bb2: "y.ret"() : () -> ()}) : () -> ()
// -----
"x.op"() ({"y.br"()[^bb1] : () -> () ^bb1: "y.br"()[^bb1] : () -> ()}) : () -> ()
// -----
%0:3 = "x.op"() : () -> (i32, f32, !my.t) "y.use"(%0#1, %0#2) : (f32, !my.t) -> ()
// -----
%a, %b = "x.op"() : () -> (i32, i32) "y.use"(%b) : (i32) -> ()
// -----
"odd name"() : () -> ()
// -----
"odd"() : () -> ()
// -----
"x.op"() <{a = 1 : i32}> : () -> ()
// -----
"x.op"() <{a = 1 : i32}> {b = 2 : i32} : () -> ()
// -----
func.func @"quoted name"() { "tfrt.return"() : () -> () }
// -----
func.func private @f(i32 {a.b = 1 : i32}) -> (i32 {c.d})
// -----
func.func @f(%a: i32 {a.b}, %b: f32) -> (i32, f32 {c.d = "x"}) attributes {tfrt.sync} { tfrt.return %a, %b : i32, f32 }
// -----
func.func private @f(i32) attributes {"odd key" = 1}
// -----
func.func nested @f() { tfrt.return }
// -----
func.func private @f() -> ((i32) -> i32)
// -----
module @a {}
// -----
module @"a b" attributes {x.y = 1 : i32} {}
// -----
module { module { func.func @f() { tfrt.return } } }
// -----
module attributes {tfrt.compiled} {}
// -----
func.func @f() { "x.op"() : () -> () tfrt.return }
// -----
func.func @f(%c: i1) { tfrt.if %c : () -> () { tfrt.return } tfrt.return }
// -----
func.func @f(%c: i1) { %0 = "x.op"() {} : () -> i32 %1 = tfrt.if %c, %0 : (i32) -> (i32) { tfrt.return %0 : i32 } else { tfrt.return %0 : i32 } tfrt.return }
// -----
func.func @f() -> i32 { %0 = tfrt.constant.i32 1 tfrt.return %0 : i32 }
// -----
func.func @f() { %0 = tfrt.constant.f32 0x7FC00000 %1 = tfrt.constant.bf16 1.0 %2 = tfrt.constant.ui32 7 tfrt.return }
// -----
func.func @f() { %0 = tfrt.constant.i1 1 tfrt.return }
// -----
func.func @f(%a: i32 loc("arg")) { tfrt.return }
// -----
module @m attributes {tfrt.compiled} { func.func @f(%a: f32) -> f32 { %0 = func.call @f(%a) : (f32) -> f32 func.return %0 : f32 } }
// -----
#alias = loc("x":1:2) "x.op"() : () -> () loc(#alias)
// -----
!t = tuple<i32, !my.t> #a = {x = !t} "x.op"() {a = #a, t = !t} : () -> ()
