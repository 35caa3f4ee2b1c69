//! Tests of text in, text out: the printed text for each form that is read.

use expect_test::{Expect, expect};
use tfrt_ir::{PrintOptions, Source, parse, print, verify};

fn module(text: &str) -> tfrt_ir::Module {
    let module = parse(&Source::new("t.mlir", text)).unwrap_or_else(|errors| panic!("{errors}"));
    verify(&module).unwrap_or_else(|errors| panic!("{errors}"));
    module
}

fn printed(text: &str, options: PrintOptions) -> String {
    let first = print(&module(text), options);
    let second = print(&module(&first), options);
    assert_eq!(first, second, "printing is not a fixpoint");
    first
}

fn check(text: &str, expected: Expect) {
    let pretty = printed(text, PrintOptions::default());
    expected.assert_eq(&pretty);
    let generic = printed(
        text,
        PrintOptions {
            generic: true,
            locations: false,
        },
    );
    assert_eq!(
        printed(&generic, PrintOptions::default()),
        pretty,
        "generic says something else"
    );
}

fn check_generic(text: &str, expected: Expect) {
    expected.assert_eq(&printed(
        text,
        PrintOptions {
            generic: true,
            locations: false,
        },
    ));
}

fn check_locations(text: &str, expected: Expect) {
    expected.assert_eq(&printed(
        text,
        PrintOptions {
            generic: false,
            locations: true,
        },
    ));
}

/// Checks how an attribute, or several with commas between, is printed.
fn check_attributes(text: &str, expected: Expect) {
    let text = format!("\"t.op\"() {{v = [\n{text}\n]}} : () -> ()");
    let printed = printed(&text, PrintOptions::default());
    let list = printed.split_once("{v = [").expect("one operation").1;
    expected.assert_eq(list.rsplit_once("]} :").expect("one operation").0);
}

#[test]
fn constants_print_their_value() {
    check(
        "
func.func @f() {
  %a = tfrt.constant.i1 true
  %b = tfrt.constant.i1 0
  %c = tfrt.constant.i32 -4
  %d = tfrt.constant.i64 0x10
  %e = tfrt.constant.ui32 4095 {note}
  %f = tfrt.constant.ui64 18446744073709551615
  %g = tfrt.constant.bf16 1.0
  %h = tfrt.constant.f16 1.5
  %i = tfrt.constant.f32 0x7F800000
  %j = tfrt.constant.f64 -0.1
  %k = tfrt.constant.complex64 1.0, 2.0
  %l = tfrt.constant.i32 3000000000
  tfrt.return
}
",
        expect![[r#"
            module {
              func.func @f() {
                %0 = tfrt.constant.i1 true
                %1 = tfrt.constant.i1 false
                %2 = tfrt.constant.i32 -4
                %3 = tfrt.constant.i64 16
                %4 = tfrt.constant.ui32 4095 {note}
                %5 = tfrt.constant.ui64 18446744073709551615
                %6 = tfrt.constant.bf16 1.000000e+00
                %7 = tfrt.constant.f16 1.500000e+00
                %8 = tfrt.constant.f32 0x7F800000
                %9 = tfrt.constant.f64 -1.000000e-01
                %10 = tfrt.constant.complex64 1.000000e+00, 2.000000e+00
                %11 = tfrt.constant.i32 -1294967296
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn arithmetic_writes_operands_only() {
    check(
        "
func.func @f(%a: i32, %x: f32, %ch: !tfrt.chain, %p: i1) -> i1 {
  %q, %r = tfrt.div.i32 %a, %a
  %s:2 = tfrt.div.i32 %q, %r
  %sum = tfrt.add.i32 %s#0, %s#1 {k = 1 : i8}
  %three:3 = tfrt_test.count3.i32 %sum
  %c1 = tfrt.merge.chains %ch, %sum, %x : !tfrt.chain, i32, f32
  tfrt.merge.chains :
  %e = tfrt.equal.i32 %three#2, %a
  %z = tfrt.and.i1 %e, %p
  tfrt.print.i1 %z, %c1
  %d = tfrt.get_device %c1 {device_name = \"CPU:0\"}
  tfrt.return %z : i1
}
",
        expect![[r#"
            module {
              func.func @f(%arg0: i32, %arg1: f32, %arg2: !tfrt.chain, %arg3: i1) -> i1 {
                %0:2 = tfrt.div.i32 %arg0, %arg0
                %1:2 = tfrt.div.i32 %0#0, %0#1
                %2 = tfrt.add.i32 %1#0, %1#1 {k = 1 : i8}
                %3:3 = tfrt_test.count3.i32 %2
                %4 = tfrt.merge.chains %arg2, %2, %arg1 : !tfrt.chain, i32, f32
                %5 = tfrt.merge.chains :
                %6 = tfrt.equal.i32 %3#2, %arg0
                %7 = tfrt.and.i1 %6, %arg3
                %8 = tfrt.print.i1 %7, %4
                %9 = tfrt.get_device %4 {device_name = "CPU:0"}
                tfrt.return %7 : i1
              }
            }
        "#]],
    );
}

#[test]
fn types_that_older_texts_leave_out_are_those_of_the_values() {
    check(
        "
func.func @more(%ch: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %ch, %x : !tfrt.chain, !corert.tensorhandle
}
func.func @f(%ch: !tfrt.chain, %x: !corert.tensorhandle) -> !tfrt.chain {
  %a:2 = corert.cond %x @more @more (%ch, %x) : (!corert.tensorhandle)
  %b, %y = corert.while @more @more (%ch, %a#1) : (!corert.tensorhandle)
  %c = tfrt.merge.chains %a#0, %b {k = 1 : i32}
  tfrt.return %c : !tfrt.chain
}
",
        expect![[r#"
            module {
              func.func @more(%arg0: !tfrt.chain, %arg1: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
                tfrt.return %arg0, %arg1 : !tfrt.chain, !corert.tensorhandle
              }
              func.func @f(%arg0: !tfrt.chain, %arg1: !corert.tensorhandle) -> !tfrt.chain {
                %0, %1 = corert.cond %arg1 @more @more (%arg0, %arg1) : (!corert.tensorhandle) -> (!corert.tensorhandle)
                %2, %3 = corert.while @more @more (%arg0, %1) : (!corert.tensorhandle) -> (!corert.tensorhandle)
                %4 = tfrt.merge.chains %0, %2 {k = 1 : i32} : !tfrt.chain, !tfrt.chain
                tfrt.return %4 : !tfrt.chain
              }
            }
        "#]],
    );
    // What is defined below has no type yet.
    let text = "func.func @f(%ch: !tfrt.chain) {
  %c = tfrt.merge.chains %ch, %later
  %later = tfrt.new.chain
  tfrt.return
}
";
    assert!(parse(&Source::new("t", text)).is_err());
}

#[test]
fn control_flow_reuses_operand_names() {
    check(
        "
func.func @f(%c: i1, %x: i32, %y: f32) -> i32 {
  %r = tfrt.if %c, %x, %y : (i32, f32) -> i32 {
    tfrt.return %x : i32
  } else {
    %z = tfrt.constant.i32 0
    tfrt.return %z : i32
  }
  tfrt.if %c : () -> () { tfrt.return }
  tfrt.if %c, %x attributes {hot} : (i32) -> () {
    \"use\"(%x) : (i32) -> ()
    tfrt.return
  } else {
    \"other\"() : () -> ()
    tfrt.return
  }
  %x1, %y1 = tfrt.repeat.i32 %x, %r, %y : i32, f32 {
    tfrt.return %r, %y : i32, f32
  }
  tfrt.repeat.i32 %x { tfrt.return }
  %done = tfrt.parallel_for.i32 %x to %r fixed %x1, %y : f32 {
    %u = \"use\"(%x, %r, %y) : (i32, i32, f32) -> !tfrt.chain
    tfrt.return %u : !tfrt.chain
  }
  tfrt.parallel_for.i32 %x to %r fixed %x1 { tfrt.return }
  %v = tfrt_test.do.async %x, %y : (i32, f32) -> (i32) { tfrt.return %x : i32 }
  tfrt_test.do.async : () -> () { tfrt.return }
  tfrt_test.benchmark \"add\"(%x : i32) duration_secs = 1, max_count = 100 {
    %s = tfrt.add.i32 %x, %x
    tfrt.return %s : i32
  }
  tfrt.return %r : i32
}
",
        expect![[r#"
            module {
              func.func @f(%arg0: i1, %arg1: i32, %arg2: f32) -> i32 {
                %0 = tfrt.if %arg0, %arg1, %arg2 : (i32, f32) -> (i32)  {
                  tfrt.return %arg1 : i32
                } else  {
                  %6 = tfrt.constant.i32 0
                  tfrt.return %6 : i32
                }
                tfrt.if %arg0 : () -> ()  {
                  tfrt.return
                }
                tfrt.if %arg0, %arg1 attributes {hot} : (i32) -> ()  {
                  "use"(%arg1) : (i32) -> ()
                  tfrt.return
                } else  {
                  "other"() : () -> ()
                  tfrt.return
                }
                %1:2 = tfrt.repeat.i32 %arg1, %0, %arg2 : i32, f32 {
                  tfrt.return %0, %arg2 : i32, f32
                }
                tfrt.repeat.i32 %arg1 {
                  tfrt.return
                }
                %2 = tfrt.parallel_for.i32 %arg1 to %0 fixed %1#0, %arg2 : f32 {
                  %6 = "use"(%arg1, %0, %arg2) : (i32, i32, f32) -> !tfrt.chain
                  tfrt.return %6 : !tfrt.chain
                }
                %3 = tfrt.parallel_for.i32 %arg1 to %0 fixed %1#0 {
                  tfrt.return
                }
                %4 = tfrt_test.do.async %arg1, %arg2 : (i32, f32) -> (i32)  {
                  tfrt.return %arg1 : i32
                }
                tfrt_test.do.async : () -> ()  {
                  tfrt.return
                }
                %5 = tfrt_test.benchmark "add"(%arg1 : i32) duration_secs = 1, max_count = 100, num_warmup_runs = 1 {
                  %6 = tfrt.add.i32 %arg1, %arg1
                  tfrt.return %6 : i32
                }
                tfrt.return %0 : i32
              }
            }
        "#]],
    );
}

#[test]
fn calls_name_functions() {
    check(
        "
func.func private @f(i32, f32) -> i32
func.func private @block(i32, i32, f32)
func.func private @quiet()
func.func @main(%c: i1, %x: i32, %y: f32) -> i32 {
  %0 = tfrt.call @f(%x, %y) : (i32, f32) -> i32
  %1 = tfrt.cond %c @f @f (%x, %y) : (i32, f32) -> (i32)
  %2 = tfrt.case %x [@f, @f] (%x, %y) {k} : (i32, f32) -> (i32)
  %3, %4 = tfrt.while %c @f(%x, %y) parallel_iterations(4) : (i32, f32) -> (i32, f32)
  %5 = tfrt.once @f(%x, %y) : (i32, f32) -> (i32)
  %6 = tfrt.parallel_call.i32 %x to %x fixed %x @block(%y) : f32
  tfrt.once @quiet() : () -> ()
  tfrt_test.sync_benchmark @quiet() duration_secs = 1, max_count = 100, num_warmup_runs = 2
  %7 = tfrt_test.test_cost %x, %x {id = 1 : i64, _tfrt_cost = 100 : i64} : i32, i32
  tfrt.return %0 : i32
}
",
        expect![[r#"
            module {
              func.func private @f(i32, f32) -> i32
              func.func private @block(i32, i32, f32)
              func.func private @quiet()
              func.func @main(%arg0: i1, %arg1: i32, %arg2: f32) -> i32 {
                %0 = tfrt.call @f(%arg1, %arg2) : (i32, f32) -> i32
                %1 = tfrt.cond %arg0 @f @f (%arg1, %arg2) : (i32, f32) -> (i32)
                %2 = tfrt.case %arg1 [@f, @f] (%arg1, %arg2) {k} : (i32, f32) -> (i32)
                %3:2 = tfrt.while %arg0 @f(%arg1, %arg2) parallel_iterations(4) : (i32, f32) -> (i32, f32)
                %4 = tfrt.once @f(%arg1, %arg2) : (i32, f32) -> (i32)
                %5 = tfrt.parallel_call.i32 %arg1 to %arg1 fixed %arg1 @block(%arg2) : f32
                tfrt.once @quiet() : () -> ()
                tfrt_test.sync_benchmark @quiet() duration_secs = 1, max_count = 100, num_warmup_runs = 2
                %6 = tfrt_test.test_cost %arg1, %arg1 {_tfrt_cost = 100, id = 1} : i32, i32
                tfrt.return %0 : i32
              }
            }
        "#]],
    );
}

#[test]
fn functions_show_visibility_attributes_and_old_names() {
    check(
        "
func @old(%a: i32 {x.y = 1 : i32}, %b: f32) -> (i32 {z.w}, f32) attributes {tfrt.sync} {
  tfrt.return %a, %b : i32, f32
}
func.func private @native(i32, (i32) -> f32) -> ((i32) -> f32) attributes {tfrt.native}
func.func public @\"odd name\"() { tfrt.return }
module @kernel attributes {tfrt.compiled} {
  func.func @main(%in: memref<?x?xf32>) -> memref<?x?xf32> {
    %0 = call @main(%in) : (memref<?x?xf32>) -> memref<?x?xf32>
    return %0 : memref<?x?xf32>
  }
  func @other() { func.return }
}
",
        expect![[r#"
            module {
              func.func @old(%arg0: i32 {x.y = 1 : i32}, %arg1: f32) -> (i32 {z.w}, f32) attributes {tfrt.sync} {
                tfrt.return %arg0, %arg1 : i32, f32
              }
              func.func private @native(i32, (i32) -> f32) -> ((i32) -> f32) attributes {tfrt.native}
              func.func public @"odd name"() {
                tfrt.return
              }
              module @kernel attributes {tfrt.compiled} {
                func.func @main(%arg0: memref<?x?xf32>) -> memref<?x?xf32> {
                  %0 = call @main(%arg0) : (memref<?x?xf32>) -> memref<?x?xf32>
                  return %0 : memref<?x?xf32>
                }
                func.func @other() {
                  return
                }
              }
            }
        "#]],
    );
}

#[test]
fn generic_form_says_everything() {
    check_generic(
        "
module @m {
  func.func @f(%c: i1, %x: i32) -> i32 {
    %0:2 = \"t.op\"(%c, %x) <{p = 1 : i32}> ({
      ^bb0(%a: i32, %b: f32):
        \"t.inner\"(%a)[^bb1, ^bb2] : (i32) -> ()
      ^bb1:
        \"t.end\"()[^bb2] : () -> ()
      ^bb2:
        \"t.end\"() : () -> ()
    }, {}) {q = \"s\", a} : (i1, i32) -> (i32, f32)
    tfrt.return %0#0 : i32
  }
}
",
        expect![[r#"
            "builtin.module"() ({
              "func.func"() ({
              ^bb0(%arg0: i1, %arg1: i32):
                %0:2 = "t.op"(%arg0, %arg1) ({
                ^bb0(%arg2: i32, %arg3: f32):
                  "t.inner"(%arg2)[^bb1, ^bb2] : (i32) -> ()
                ^bb1:  // pred: ^bb0
                  "t.end"()[^bb2] : () -> ()
                ^bb2:  // 2 preds: ^bb0, ^bb1
                  "t.end"() : () -> ()
                }, {
                }) {a, p = 1 : i32, q = "s"} : (i1, i32) -> (i32, f32)
                "tfrt.return"(%0#0) : (i32) -> ()
              }) {function_type = (i1, i32) -> i32, sym_name = "f"} : () -> ()
            }) {sym_name = "m"} : () -> ()
        "#]],
    );
}

#[test]
fn attribute_without_a_place_needs_the_generic_form() {
    let text = r#"func.func @f(%a: i32) {
      %c = "tfrt.parallel_for.i32"(%a, %a, %a) ({
      ^bb0(%b: i32, %e: i32):
        tfrt.return
      }) {extra = 1 : i32} : (i32, i32, i32) -> !tfrt.chain
      tfrt.return
    }"#;
    let text = printed(text, PrintOptions::default());
    assert!(text.contains("{extra = 1 : i32}"), "{text}");
}

#[test]
fn empty_module_has_a_block() {
    check_generic(
        "",
        expect![[r#"
        "builtin.module"() ({
        ^bb0:
        }) : () -> ()
    "#]],
    );
    check(
        "",
        expect![[r#"
        module {
        }
    "#]],
    );
}

#[test]
fn operand_may_be_defined_later_in_a_graph_region() {
    check(
        "
%a = \"t.op\"(%b, %b#0) : (i32, i32) -> i32
%b = \"t.op\"(%a, %a) : (i32, i32) -> i32
",
        expect![[r#"
            module {
              %0 = "t.op"(%1, %1) : (i32, i32) -> i32
              %1 = "t.op"(%0, %0) : (i32, i32) -> i32
            }
        "#]],
    );
}

#[test]
fn blocks_name_their_predecessors() {
    check(
        "
func.func @f(%c: i1) {
  \"t.br\"()[^later, ^other] : () -> ()
^later(%x: i32 loc(\"here\")):
  \"t.br\"(%x)[^other] : (i32) -> ()
^other:
  tfrt.return
^never:
  tfrt.return
}
",
        expect![[r#"
            module {
              func.func @f(%arg0: i1) {
                "t.br"()[^bb1, ^bb2] : () -> ()
              ^bb1(%0: i32):  // pred: ^bb0
                "t.br"(%0)[^bb2] : (i32) -> ()
              ^bb2:  // 2 preds: ^bb0, ^bb1
                tfrt.return
              ^bb3:  // no predecessors
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn numbers_keep_width_sign_and_size() {
    check_attributes(
        "1, -1, 1 : i8, 255 : i8, -128 : si8, 255 : ui8, 0 : i0, true, false, -1 : i1, 7 : index,
         170141183460469231731687303715884105727 : i128, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF : ui128,
         -1 : i256, 12345678901234567890123456789012345678901234567890 : i200, 1 : i16777215,
         -9223372036854775808, 18446744073709551615",
        expect![
            "1, -1, 1 : i8, -1 : i8, -128 : si8, 255 : ui8, 0 : i0, true, false, true, 7 : index, 170141183460469231731687303715884105727 : i128, 340282366920938463463374607431768211455 : ui128, -1 : i256, 12345678901234567890123456789012345678901234567890 : i200, 1 : i16777215, -9223372036854775808, -1"
        ],
    );
}

#[test]
fn floats_print_short_long_or_hex() {
    check_attributes(
        "1.0, -0.0, 0.1, 0.1 : f32, 256.3, 1.e10, 1.5e-300, 3.4028234663852886e+38 : f32,
         0x7FF0000000000000 : f64, 0xFFC00000 : f32, 0x7C00 : f16, 65504.0 : f16, 65520.0 : f16,
         0x0001 : f16, 0x7F80 : bf16, 3.140625 : bf16, 0.333 : bf16, 1.0e300 : f32, 1.5 : f8E5M2,
         123456.7, 0.001234567, 12345678912345678.0",
        expect![
            "1.000000e+00, -0.000000e+00, 1.000000e-01, 1.000000e-01 : f32, 2.563000e+02, 1.000000e+10, 1.500000e-300, 3.40282347E+38 : f32, 0x7FF0000000000000 : f64, 0xFFC00000 : f32, 0x7C00 : f16, 6.550400e+04 : f16, 0x7C00 : f16, 5.960460e-08 : f16, 0x7F80 : bf16, 3.140620e+00 : bf16, 3.320310e-01 : bf16, 0x7F800000 : f32, 1.500000e+00 : f8E5M2, 123456.7, 0.001234567, 0x4345EE2A2F0A6B27 : f64"
        ],
    );
}

#[test]
fn strings_keep_their_bytes() {
    check_attributes(
        r#""plain", "tab\tnew\nline", "quote\" back\\slash", "\00\FF", "grün", "typed" : i32"#,
        expect![[
            r#""plain", "tab\09new\0Aline", "quote\22 back\\slash", "\00\FF", "gr\C3\BCn", "typed" : i32"#
        ]],
    );
}

#[test]
fn compound_attributes_nest() {
    check_attributes(
        r#"[], {}, {b, a = 1 : i32, "odd key" = [unit]}, @f, @m::@g, @"odd name"::@h,
           i32, !tfrt.chain, (i32) -> (), () -> i32, (i32, f32) -> (i1, tensor<2xi8>),
           array<i32>, array<i8: 1, -2>, array<i1: true, false>, array<f32: 1.5, 0x7F800000>,
           #corert.shape<2x?x3>, #corert.shape<*>, #corert.shape<>,
           affine_map<(d0, d1)[s0] -> (d1, d0 + s0)>, affine_set<(d0) : (d0 >= 0)>,
           strided<[1, ?], offset: 3>, #d.a<"x>y", [1]>, #d<raw>, loc("a":1:2)"#,
        expect![[
            r#"[], {}, {a = 1 : i32, b, "odd key" = [unit]}, @f, @m::@g, @"odd name"::@h, i32, !tfrt.chain, (i32) -> (), () -> i32, (i32, f32) -> (i1, tensor<2xi8>), array<i32>, array<i8: 1, -2>, array<i1: true, false>, array<f32: 1.500000e+00, 0x7F800000>, #corert.shape<2x?x3>, #corert.shape<*>, #corert.shape<>, affine_map<(d0, d1)[s0] -> (d1, d0 + s0)>, affine_set<(d0) : (d0 >= 0)>, strided<[1, ?], offset: 3>, #d.a<"x>y", [1]>, #d<raw>, loc("a":1:2)"#
        ]],
    );
}

#[test]
fn dense_elements_come_as_list_splat_and_hex() {
    check_attributes(
        r#"dense<[1, 2, 3]> : tensor<3xi16>, dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>,
           dense<7> : tensor<1000000x1000000xi32>, dense<[5, 5]> : tensor<2xui8>,
           dense<> : tensor<0x3xi8>, dense<true> : tensor<i1>, dense<[true, false]> : vector<2xi1>,
           dense<[(1.0, 2.0), (0x3F800000, -1.5)]> : tensor<2xcomplex<f32>>,
           dense<(1, -2)> : tensor<2xcomplex<i8>>, dense<"0x0100000002000000"> : tensor<2xi32>,
           dense<"0xFF"> : tensor<4xi8>, dense<"0x05"> : tensor<3xi1>, dense<-1> : tensor<2xi7>,
           dense<["a", "b\00"]> : tensor<2x!tfrt.string>, dense<"s"> : tensor<4x!tfrt.string>,
           dense<340282366920938463463374607431768211455> : tensor<1xi128>,
           sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>, sparse<[], []> : tensor<2xf32>,
           sparse<> : tensor<2xf32>, dense<[0xFFF0, 1.5]> : tensor<2xbf16>"#,
        expect![[
            r#"dense<[1, 2, 3]> : tensor<3xi16>, dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>, dense<7> : tensor<1000000x1000000xi32>, dense<5> : tensor<2xui8>, dense<> : tensor<0x3xi8>, dense<true> : tensor<i1>, dense<[true, false]> : vector<2xi1>, dense<[(1.000000e+00,2.000000e+00), (1.000000e+00,-1.500000e+00)]> : tensor<2xcomplex<f32>>, dense<(1,-2)> : tensor<2xcomplex<i8>>, dense<[1, 2]> : tensor<2xi32>, dense<-1> : tensor<4xi8>, dense<[true, false, true]> : tensor<3xi1>, dense<-1> : tensor<2xi7>, dense<["a", "b\00"]> : tensor<2x!tfrt.string>, dense<"s"> : tensor<4x!tfrt.string>, dense<-1> : tensor<1xi128>, sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>, sparse<> : tensor<2xf32>, sparse<> : tensor<2xf32>, dense<[0xFFF0, 1.500000e+00]> : tensor<2xbf16>"#
        ]],
    );
}

#[test]
fn long_dense_elements_print_as_hex() {
    let list: Vec<String> = (0..101).map(|index| (index % 2).to_string()).collect();
    let list = list.join(", ");
    check_attributes(
        &format!("dense<[{list}]> : tensor<101xi8>, dense<[{list}]> : tensor<101xi1>"),
        expect![[
            r#"dense<"0x0001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100010001000100"> : tensor<101xi8>, dense<"0xAAAAAAAAAAAAAAAAAAAAAAAA0A"> : tensor<101xi1>"#
        ]],
    );
}

#[test]
fn types_of_every_kind() {
    check_attributes(
        r#"i1, si8, ui64, i16777215, f8E5M2, f16, bf16, tf32, f32, f64, f80, f128, index, none,
           complex<f64>, tuple<>, tuple<i32, tuple<f32>>, tensor<f32>, tensor<0xi8>, tensor<*xf32>,
           tensor<2x?xf32>, tensor<4x5xi8, #d.enc<1>>, tensor<2 x 3 x f32>, vector<4xf32>,
           vector<[4]x2xf32>, memref<?x?xf32>, memref<*xi8, 1>, memref<2x3xf32, strided<[3, 1]>, 1>,
           memref<4xf32, affine_map<(d0) -> (d0)>>, !vt.value, !test.atomic.i32, !corert.string,
           !d.t<"a", [1], !x.y<2>>, !d<raw text>, ((i32) -> i32) -> (() -> ())"#,
        expect![[
            r#"i1, si8, ui64, i16777215, f8E5M2, f16, bf16, tf32, f32, f64, f80, f128, index, none, complex<f64>, tuple<>, tuple<i32, tuple<f32>>, tensor<f32>, tensor<0xi8>, tensor<*xf32>, tensor<2x?xf32>, tensor<4x5xi8, #d.enc<1>>, tensor<2x3xf32>, vector<4xf32>, vector<[4]x2xf32>, memref<?x?xf32>, memref<*xi8, 1>, memref<2x3xf32, strided<[3, 1]>, 1>, memref<4xf32>, !vt.value, !test.atomic.i32, !corert.string, !d.t<"a", [1], !x.y<2>>, !d<raw text>, ((i32) -> i32) -> (() -> ())"#
        ]],
    );
}

#[test]
fn aliases_stand_for_what_they_name() {
    check(
        "
!pair = tuple<i32, f32>
!deep = tuple<!pair, !pair>
!old = type i8
#five = 5 : i32
#list = [#five, #five]
\"t.op\"() {a = #list, t = !deep, o = !old} : () -> ()
",
        expect![[r#"
            module {
              "t.op"() {a = [5 : i32, 5 : i32], o = i8, t = tuple<tuple<i32, f32>, tuple<i32, f32>>} : () -> ()
            }
        "#]],
    );
}

#[test]
fn locations_of_all_forms() {
    check_locations(
        r#"
#before = loc("alias.py":1:2)
func.func @f(%a: i32 loc("arg")) {
  "a"() : () -> () loc(unknown)
  "b"() : () -> () loc("x.py":3:4)
  "c"() : () -> () loc("name")
  "d"() : () -> () loc("name"("x.py":3:4))
  "e"() : () -> () loc(callsite("callee" at "x.py":3:4))
  "f"() : () -> () loc(fused["m", "x.py":3:4])
  "g"() : () -> () loc(fused<"meta">["m", unknown, "m"])
  "h"() : () -> () loc(fused[unknown, "single"])
  "i"() : () -> () loc(#before)
  "j"() : () -> () loc(#behind)
  "k"() : () -> ()
  tfrt.return loc("r")
} loc("func")
#behind = loc(callsite(#before at fused["z", #before]))
"#,
        expect![[r#"
            module {
              func.func @f(%arg0: i32 loc("arg")) {
                "a"() : () -> () loc(unknown)
                "b"() : () -> () loc("x.py":3:4)
                "c"() : () -> () loc("name")
                "d"() : () -> () loc("name"("x.py":3:4))
                "e"() : () -> () loc(callsite("callee" at "x.py":3:4))
                "f"() : () -> () loc(fused["m", "x.py":3:4])
                "g"() : () -> () loc(fused<"meta">["m"])
                "h"() : () -> () loc("single")
                "i"() : () -> () loc("alias.py":1:2)
                "j"() : () -> () loc(callsite("alias.py":1:2 at fused["z", "alias.py":1:2]))
                "k"() : () -> () loc("t.mlir":14:3)
                tfrt.return loc("r")
              } loc("func")
            } loc("t.mlir":0:0)
        "#]],
    );
}

#[test]
fn locations_of_ranges_are_their_beginnings() {
    check_locations(
        "\"a\"() : () -> () loc(\"x.py\":3:4 to :9)\n\"b\"() : () -> () loc(\"x.py\":3:4 to 5:6)\n",
        expect![[r#"
            module {
              "a"() : () -> () loc("x.py":3:4)
              "b"() : () -> () loc("x.py":3:4)
            } loc("t.mlir":0:0)
        "#]],
    );
}

#[test]
fn default_location_is_that_of_the_operation_name() {
    check_locations(
        "func.func @f() {\n  %a, %b = \"two\"() : () -> (i32, i32)\n  tfrt.return\n}",
        expect![[r#"
            module {
              func.func @f() {
                %0:2 = "two"() : () -> (i32, i32) loc("t.mlir":2:12)
                tfrt.return loc("t.mlir":3:3)
              } loc("t.mlir":1:1)
            } loc("t.mlir":0:0)
        "#]],
    );
}

#[test]
fn forms_that_could_not_be_read_back_are_generic() {
    check(
        "
func.func @f(%c: i1, %x: i32) {
  \"tfrt.if\"(%c, %x, %x) ({
  ^bb0(%a: i32, %b: i32):
    tfrt.return
  }, {
  ^bb0(%a: i32, %b: i32):
    tfrt.return
  }) : (i1, i32, i32) -> ()
  tfrt.return
}
",
        expect![[r#"
            module {
              func.func @f(%arg0: i1, %arg1: i32) {
                "tfrt.if"(%arg0, %arg1, %arg1) ({
                ^bb0(%arg2: i32, %arg3: i32):
                  tfrt.return
                }, {
                ^bb0(%arg2: i32, %arg3: i32):
                  tfrt.return
                }) : (i1, i32, i32) -> ()
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn comments_blanks_and_metadata_say_nothing() {
    check(
        "\u{feff}// a comment\r\nmodule {} // another\n{-# dialect_resources: { x: \"0x00\" } #-}\n",
        expect![[r#"
            module {
            }
        "#]],
    );
}

#[test]
fn single_module_is_the_program_and_several_are_wrapped() {
    check(
        "module @one {}",
        expect![[r#"
        module @one {
        }
    "#]],
    );
    check(
        "module @one {}\nmodule @two {}",
        expect![[r#"
        module {
          module @one {
          }
          module @two {
          }
        }
    "#]],
    );
}

#[test]
fn aliases_in_location_constants_are_replaced() {
    let text = "#a = loc(\"a\")\n#b = loc(callsite(#a at \"f\":1:2))\n\"t\"() {l = #b} : () -> ()";
    let module = parse(&Source::new("t", text)).unwrap();
    let printed = module.print(PrintOptions::default());
    assert!(
        printed.contains("{l = loc(callsite(\"a\" at \"f\":1:2))}"),
        "{printed}"
    );
    let late = "#b = loc(callsite(#a at \"f\":1:2))\n\"t\"() {l = #b} : () -> ()\n#a = loc(\"a\")";
    assert!(parse(&Source::new("t", late)).is_err());
}

#[test]
fn bits_that_are_all_the_same_are_one_for_all() {
    let text = "\"t\"() {d = dense<\"0x03\"> : tensor<2xi1>, e = dense<\"0x01\"> : tensor<2xi1>} : () -> ()";
    let module = parse(&Source::new("t", text)).unwrap();
    let printed = module.print(PrintOptions::default());
    assert!(
        printed.contains("d = dense<true> : tensor<2xi1>"),
        "{printed}"
    );
    assert!(
        printed.contains("e = dense<[true, false]> : tensor<2xi1>"),
        "{printed}"
    );
}

#[test]
fn ops_are_executed_with_attributes_in_braces() {
    check(
        r#"func.func @f(%h: !corert.ophandler, %c: !tfrt.chain, %x: !corert.tensorhandle) {
             corert.executeop(%h) "none"()
             corert.executeop (%h) "none" () {} {} : 0
             %a = corert.executeop(%h) "one"(%x) {shape = [1, 65536], "a b" = i32, unit} : 1
             %b:2 = corert.executeop(%h) "two"(%x, %a) {} {f = "function"} : 2
             %c0, %d = corert.executeop.seq(%h, %c) "in.order"(%b#1) {b = 1 : i32, a = 2 : i32} {g = "f"} : 1
             corert.executeop.seq(%h, %c0) "in.order"(%d)
             %s = corert_sync.executeop(%h) "one"(%x) {k = @symbol} : 1
             tfrt.return
           }"#,
        expect![[r#"
            module {
              func.func @f(%arg0: !corert.ophandler, %arg1: !tfrt.chain, %arg2: !corert.tensorhandle) {
                corert.executeop(%arg0) "none"()
                corert.executeop(%arg0) "none"()
                %0 = corert.executeop(%arg0) "one"(%arg2) {shape = [1, 65536], "a b" = i32, unit} : 1
                %1:2 = corert.executeop(%arg0) "two"(%arg2, %0) {} {f = "function"} : 2
                %2, %3 = corert.executeop.seq(%arg0, %arg1) "in.order"(%1#1) {b = 1 : i32, a = 2 : i32} {g = "f"} : 1
                %4 = corert.executeop.seq(%arg0, %2) "in.order"(%3)
                %5 = corert_sync.executeop(%arg0) "one"(%arg2) {k = @symbol} : 1
                tfrt.return
              }
            }
        "#]],
    );
    check_generic(
        r#"func.func @f(%h: !corert.ophandler, %x: !corert.tensorhandle) {
             %a = corert.executeop(%h) "one"(%x) {b = 1 : i32, a} {f = "function"} : 1
             tfrt.return
           }"#,
        expect![[r#"
            "builtin.module"() ({
              "func.func"() ({
              ^bb0(%arg0: !corert.ophandler, %arg1: !corert.tensorhandle):
                %0 = "corert.executeop"(%arg0, %arg1) {op_attrs = [["b", 1 : i32], ["a", unit]], op_func_attrs = [["f", "function"]], op_name = "one"} : (!corert.ophandler, !corert.tensorhandle) -> !corert.tensorhandle
                "tfrt.return"() : () -> ()
              }) {function_type = (!corert.ophandler, !corert.tensorhandle) -> (), sym_name = "f"} : () -> ()
            }) : () -> ()
        "#]],
    );
}

#[test]
fn pairs_that_no_dictionary_can_say_are_generic() {
    let with = |op_attrs: &str| {
        let text = format!(
            r#""corert.executeop"(%h) {{op_attrs = {op_attrs}, op_func_attrs = [], op_name = "op"}} : (!corert.ophandler) -> ()"#
        );
        let program = format!("func.func @f(%h: !corert.ophandler) {{\n{text}\ntfrt.return\n}}");
        printed(&program, PrintOptions::default()).contains(r#""corert.executeop""#)
    };
    assert!(!with(r#"[["key", 1 : i32]]"#));
    assert!(with(r#"[["", 1 : i32]]"#));
    assert!(with(r#"[["key" : i32, 1 : i32]]"#));
    assert!(with(r#"[["\FF", 1 : i32]]"#));
    assert!(with(r#"[["key", 1 : i32], ["key", 2 : i32]]"#));
}

#[test]
fn conditions_and_loops_of_tensors_write_types_behind_the_chain() {
    check(
        r#"func.func @first(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
             tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
           }
           func.func @none(%c: !tfrt.chain) -> !tfrt.chain {
             tfrt.return %c : !tfrt.chain
           }
           func.func @f(%c: !tfrt.chain, %x: !corert.tensorhandle) {
             %a:2 = corert.cond %x @first @first (%c, %x) : (!corert.tensorhandle) -> (!corert.tensorhandle)
             %b = corert.cond %x @none @none (%a#0) : () -> ()
             %d:2 = corert.while @first @first (%b, %a#1) : (!corert.tensorhandle) -> (!corert.tensorhandle)
             tfrt.return
           }"#,
        expect![[r#"
            module {
              func.func @first(%arg0: !tfrt.chain, %arg1: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
                tfrt.return %arg0, %arg1 : !tfrt.chain, !corert.tensorhandle
              }
              func.func @none(%arg0: !tfrt.chain) -> !tfrt.chain {
                tfrt.return %arg0 : !tfrt.chain
              }
              func.func @f(%arg0: !tfrt.chain, %arg1: !corert.tensorhandle) {
                %0, %1 = corert.cond %arg1 @first @first (%arg0, %arg1) : (!corert.tensorhandle) -> (!corert.tensorhandle)
                %2 = corert.cond %arg1 @none @none (%0) : () -> ()
                %3, %4 = corert.while @first @first (%2, %1) : (!corert.tensorhandle) -> (!corert.tensorhandle)
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn handlers_constants_and_transfers_have_forms() {
    check(
        r#"func.func @f(%c: !tfrt.chain, %h: !corert.ophandler, %d: !tfrt.device) -> i32 {
             %g = corert.get_op_handler %c "cpu"
             corert.register_op_handler %h "again"
             %a = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>
             %s = corert.const_string_tensor {shape = [1, 2], value = ["const", "string"]}
             %u = corert.create_dense_tensor.ui64 {shape = [1, 1], value = [1 : ui64]}
             %z = corert.create_dense_tensor.complex64 {shape = [1], value = [1.0 : f32, 0.0 : f32]}
             %t = corert.get_dst_tensor_type %a, %d
             %x = corert.transfer %a, %d, %t
             %y = corert.transfer_inferred_tensortype %x, %d
             %n = corert.tensorhandle_to_int32 %y
             tfrt.return %n : i32
           }"#,
        expect![[r#"
            module {
              func.func @f(%arg0: !tfrt.chain, %arg1: !corert.ophandler, %arg2: !tfrt.device) -> i32 {
                %0 = corert.get_op_handler %arg0 "cpu"
                %1 = corert.register_op_handler %arg1 "again"
                %2 = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>
                %3 = corert.const_string_tensor {shape = [1, 2], value = ["const", "string"]}
                %4 = corert.create_dense_tensor.ui64 {shape = [1, 1], value = [1 : ui64]}
                %5 = corert.create_dense_tensor.complex64 {shape = [1], value = [1.000000e+00 : f32, 0.000000e+00 : f32]}
                %6 = corert.get_dst_tensor_type %2, %arg2
                %7 = corert.transfer %2, %arg2, %6
                %8 = corert.transfer_inferred_tensortype %7, %arg2
                %9 = corert.tensorhandle_to_int32 %8
                tfrt.return %9 : i32
              }
            }
        "#]],
    );
}
