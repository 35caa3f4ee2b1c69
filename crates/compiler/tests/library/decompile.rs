//! Tests of decompiling: what files keep, what they lose, and files that no compiler wrote.

use expect_test::{Expect, expect};
use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, Decompiled, compile, decompile};
use tfrt_ir::{PrintOptions, Source, parse, print};

fn bytes_of(text: &str, strip: bool) -> BefBuffer {
    let module = parse(&Source::new("t.mlir", text)).unwrap_or_else(|errors| panic!("{errors}"));
    compile(&module, &CompileOptions { strip }).unwrap_or_else(|errors| panic!("{errors}"))
}

fn restored(bytes: &BefBuffer) -> Decompiled {
    let file = BefFile::open(bytes.clone()).unwrap();
    decompile(&file).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Checks the decompiled text, and that it compiles to the same bytes, also when parsed again.
fn check(text: &str, expected: Expect) {
    check_with(text, PrintOptions::default(), expected);
}

fn check_locations(text: &str, expected: Expect) {
    let locations = true;
    let generic = false;
    check_with(text, PrintOptions { generic, locations }, expected);
}

fn check_with(text: &str, options: PrintOptions, expected: Expect) {
    let bytes = bytes_of(text, false);
    let Decompiled { module, warnings } = restored(&bytes);
    assert!(warnings.is_empty(), "{warnings}");
    expected.assert_eq(&print(&module, options));
    let again = compile(&module, &CompileOptions::default()).unwrap();
    assert!(again.as_bytes() == bytes.as_bytes(), "other bytes");
    for generic in [false, true] {
        let locations = true;
        let text = print(&module, PrintOptions { generic, locations });
        let again = bytes_of(&text, false);
        assert!(again.as_bytes() == bytes.as_bytes(), "other bytes: {text}");
    }
}

fn check_stripped(text: &str, expected: Expect) {
    let Decompiled { module, warnings } = restored(&bytes_of(text, true));
    expected.assert_eq(&format!("{}{module}", warnings.render(false)));
}

/// A program with one of everything.
const MIXED: &str = r#"
    module @kernels attributes {tfrt.compiled} {
      func.func @main(%x: i32) { return }
    }
    func.func private @native(i32) -> i32 attributes {tfrt.native}
    func.func @sync(%x: i32) -> i32 attributes {tfrt.sync} {
      %y = "tfrt.add_s.i32"(%x, %x) : (i32, i32) -> i32
      tfrt.return %y : i32
    }
    func.func @graph(%c: i1, %x: i32) -> (i32, !tfrt.chain) {
      "k.unit"() {func = @kernels::@main} : () -> ()
      "k.list"() {fs = [@native, @sync], n = [1 : i32, "s", [2.5 : f32]]} : () -> ()
      %r = tfrt.if %c, %x : (i32) -> (i32) {
        %a = tfrt.add.i32 %x, %x
        tfrt.return %a : i32
      } else {
        tfrt.return %x : i32
      }
      %n = "k.early"(%r, %x) {bef.nonstrict} : (i32, i32) -> i32
      %z = tfrt.new.chain
      tfrt.return %n, %z : i32, !tfrt.chain
    }"#;

#[test]
fn functions_regions_units_and_marks_come_back() {
    check(
        MIXED,
        expect![[r#"
        module {
          module @kernels attributes {tfrt.compiled} {
            func.func @main(%arg0: i32) {
              return
            }
          }
          func.func private @native(i32) -> i32 attributes {tfrt.native}
          func.func @sync(%arg0: i32) -> i32 attributes {tfrt.sync} {
            %0 = "tfrt.add_s.i32"(%arg0, %arg0) : (i32, i32) -> i32
            tfrt.return %0 : i32
          }
          func.func @graph(%arg0: i1, %arg1: i32) -> (i32, !tfrt.chain) {
            "k.unit"() {func = @kernels::@main} : () -> ()
            "k.list"() {fs = [@native, @sync], n = [1 : i32, "s", [2.500000e+00 : f32]]} : () -> ()
            %0 = tfrt.if %arg0, %arg1 : (i32) -> (i32)  {
              %3 = tfrt.add.i32 %arg1, %arg1
              tfrt.return %3 : i32
            } else  {
              tfrt.return %arg1 : i32
            }
            %1 = "k.early"(%0, %arg1) {bef.nonstrict} : (i32, i32) -> i32
            %2 = tfrt.new.chain
            tfrt.return %1, %2 : i32, !tfrt.chain
          }
        }
    "#]],
    );
}

#[test]
fn functions_get_the_names_that_the_operation_defines() {
    check(
        r#"func.func @a(%x: i32) -> i32 { tfrt.return %x : i32 }
        func.func @b(%x: i32) -> i32 { tfrt.return %x : i32 }
        func.func @main(%c: i1, %x: i32) {
          %0 = tfrt.cond %c @a @b (%x) : (i32) -> (i32)
          %1 = tfrt.case %x [@a, @b] (%x) : (i32) -> (i32)
          %2 = tfrt.while %c @a(%x) parallel_iterations(1) : (i32) -> (i32)
          %3 = tfrt.once @b(%x) : (i32) -> (i32)
          %4 = tfrt.call @b(%x) : (i32) -> i32
          tfrt.return
        }"#,
        expect![[r#"
            module {
              func.func @a(%arg0: i32) -> i32 {
                tfrt.return %arg0 : i32
              }
              func.func @b(%arg0: i32) -> i32 {
                tfrt.return %arg0 : i32
              }
              func.func @main(%arg0: i1, %arg1: i32) {
                %0 = tfrt.cond %arg0 @a @b (%arg1) : (i32) -> (i32)
                %1 = tfrt.case %arg1 [@a, @b] (%arg1) : (i32) -> (i32)
                %2 = tfrt.while %arg0 @a(%arg1) parallel_iterations(1) : (i32) -> (i32)
                %3 = tfrt.once @b(%arg1) : (i32) -> (i32)
                %4 = tfrt.call @b(%arg1) : (i32) -> i32
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn names_of_function_lists_are_the_strings_that_nothing_refers_to() {
    check(
        r#"func.func @a() { tfrt.return }
        func.func @main() {
          "k.one"() {some = @a} : () -> ()
          "k.several"() {z = @a, b = @a} : () -> ()
          "k.list"() {names = [@a, @a, @a], callee = 1 : i32} : () -> ()
          "k.taken"() {callee = "text", fn = @a} : () -> ()
          tfrt.return
        }"#,
        expect![[r#"
            module {
              func.func @a() {
                tfrt.return
              }
              func.func @main() {
                "k.one"() {callee = @a} : () -> ()
                "k.several"() {callee0 = @a, callee1 = @a} : () -> ()
                "k.list"() {callee = 1 : i32, names = [@a, @a, @a]} : () -> ()
                "k.taken"() {callee = "text", callee_ = @a} : () -> ()
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn ops_come_back_with_their_attributes() {
    let golden = include_str!("../golden/core_runtime.mlir");
    check(
        golden,
        expect![[r#"
            module {
              func.func @same(%arg0: !tfrt.chain, %arg1: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
                tfrt.return %arg0, %arg1 : !tfrt.chain, !corert.tensorhandle
              }
              func.func @main() {
                %0 = tfrt.new.chain
                %1 = corert.get_op_handler %0 "cpu"
                %2 = corert.executeop(%1) "some.op"() {shape = [1, 2], values = [1.000000e+00 : f32], dtype = f32, name = "text"} : 1
                %3:2 = corert.executeop(%1) "some.op"(%2) {value = dense<[1, 2]> : tensor<2xi32>, like = #corert.shape<1x?>} {f = "function"} : 2
                %4, %5 = corert.executeop.seq(%1, %0) "some.op"(%3#1) {list = [1 : i32, "two"], none = [], flag = true} : 1
                %6, %7 = corert.cond %5 @same @same (%4, %5) : (!corert.tensorhandle) -> (!corert.tensorhandle)
                corert.executeop(%1) "some.op"(%7)
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn numbers_keep_their_types_where_files_tell() {
    check(
        r#"func.func @main() {
          "k.k"() {a = 1 : si32, b = 1 : i32, c = [-1 : si8, 2 : si8], d = 7 : ui64} : () -> ()
          "k.k"() {a = true, b = f32, c = [i32, !corert.string], d = -1.5 : bf16} : () -> ()
          "k.k"() {a = dense<[1, 2]> : tensor<2xi16>, b = dense<[1, 2]> : vector<2xi16>} : () -> ()
          "k.k"() {a = #corert.shape<2x?>, b = #corert.shape<*>, c = "\00\FF", d = []} : () -> ()
          "k.k"() {a = dense<> : tensor<0x2xf32>, b = dense<(1.0, 2.0)> : tensor<complex<f32>>} : () -> ()
          tfrt.return
        }"#,
        expect![[r#"
            module {
              func.func @main() {
                "k.k"() {a = 1 : si32, b = 1 : i32, c = [-1 : si8, 2 : si8], d = 7 : ui64} : () -> ()
                "k.k"() {a = true, b = f32, c = [i32, !corert.string], d = -1.500000e+00 : bf16} : () -> ()
                "k.k"() {a = dense<[1, 2]> : tensor<2xi16>, b = dense<[1, 2]> : tensor<2xsi16>} : () -> ()
                "k.k"() {a = #corert.shape<2x?>, b = #corert.shape<*>, c = "\00\FF", d = []} : () -> ()
                "k.k"() {a = dense<> : tensor<0x2xf32>, b = dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f32>>} : () -> ()
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn locations_of_every_kind_come_back() {
    check_locations(
        r#"func.func @main() {
          "k.k"() : () -> ()
          "k.k"() : () -> () loc(unknown)
          "k.k"() : () -> () loc("name")
          "k.k"() : () -> () loc("name"("a.cc":1:2))
          "k.k"() : () -> () loc(callsite("f" at "b.cc":3:4))
          "k.k"() : () -> () loc(fused["x", "a.cc":1:2])
          "k.k"() : () -> () loc(fused<"pass">["x", fused<"other">["y"]])
          "k.k"() : () -> () loc(fused<"pass">[])
          tfrt.return
        } loc("function")"#,
        expect![[r#"
            module {
              func.func @main() {
                "k.k"() : () -> () loc("t.mlir":2:11)
                "k.k"() : () -> () loc(unknown)
                "k.k"() : () -> () loc("name")
                "k.k"() : () -> () loc("name"("a.cc":1:2))
                "k.k"() : () -> () loc(callsite("f" at "b.cc":3:4))
                "k.k"() : () -> () loc(fused["x", "a.cc":1:2])
                "k.k"() : () -> () loc(fused["x", fused<"as it is">["y"]])
                "k.k"() : () -> () loc(fused<"no record">[])
                tfrt.return loc("function")
              } loc("function")
            } loc(unknown)
        "#]],
    );
}

#[test]
fn streams_that_costs_decided_are_stated() {
    check(
        r#"func.func @main() attributes {tfrt.cost_threshold = 10 : i64} {
          %0 = "tfrt_test.test_cost"() {id = 0 : i64, _tfrt_cost = 3 : i64} : () -> i32
          %1 = "tfrt_test.test_cost"() {id = 1 : i64, _tfrt_cost = 30 : i64} : () -> i32
          %2 = "k.join"(%0, %1) ({
            %3 = "tfrt_test.test_cost"() {id = 0 : i64, _tfrt_cost = 3 : i64} : () -> i32
            %4 = "tfrt_test.test_cost"() {id = 0 : i64, _tfrt_cost = 3 : i64} : () -> i32
            tfrt.return
          }) : (i32, i32) -> i32
          tfrt.return
        }"#,
        expect![[r#"
            module {
              func.func @main() attributes {_tfrt_streams = [array<i64: 1, 1, 1, 1>]} {
                %0 = tfrt_test.test_cost {_tfrt_cost = 1, id = 0} :
                %1 = tfrt_test.test_cost {_tfrt_cost = 1, id = 1} :
                %2 = "k.join"(%0, %1) ({
                  %3 = tfrt_test.test_cost {_tfrt_cost = 1, id = 0} :
                  %4 = tfrt_test.test_cost {_tfrt_cost = 1, id = 0} :
                  tfrt.return
                }) : (i32, i32) -> i32
                tfrt.return
              }
            }
        "#]],
    );
}

#[test]
fn stripped_files_show_what_they_can() {
    check_stripped(
        MIXED,
        expect![[r#"
            warning: Missing AttributeTypes, AttributeNames or RegisterTypes sections. [TF0801]
            module {
              func.func private @native(i32) -> i32 attributes {tfrt.native}
              func.func @sync(%arg0: i32) -> none attributes {tfrt.sync} {
                %0 = "tfrt.add_s.i32"(%arg0, %arg0) : (i32, i32) -> none
                tfrt.return %0 : none
              }
              func.func @graph(%arg0: i1, %arg1: i32) -> (none, none) {
                "k.unit"() {attr0 = -559038737 : i32} : () -> ()
                "k.list"() {attr0 = -559038737 : i32, callee0 = @native, callee1 = @sync} : () -> ()
                %0 = tfrt.if %arg0, %arg1 : (i32) -> (none)  {
                  %3 = "tfrt.add.i32"(%arg1, %arg1) : (i32, i32) -> none
                  tfrt.return %3 : none
                } else  {
                  tfrt.return %arg1 : i32
                }
                %1 = "k.early"(%0, %arg1) {bef.nonstrict} : (none, i32) -> none
                %2 = "tfrt.new.chain"() : () -> none
                tfrt.return %1, %2 : none, none
              }
            }
        "#]],
    );
}

#[test]
fn stated_streams_must_fit_the_region() {
    for stated in [
        "1 : i32",
        "[]",
        "[array<i64: 0>]",
        "[array<i64: 0, -1>]",
        "[array<i32: 0, 0>]",
    ] {
        let text = format!(
            "func.func @f() attributes {{_tfrt_streams = {stated}}} {{\n  \
             %c = tfrt.new.chain\n  tfrt.return\n}}"
        );
        let module = parse(&Source::new("t.mlir", text)).unwrap();
        let error = compile(&module, &CompileOptions::default()).unwrap_err();
        assert!(error.to_string().contains("'_tfrt_streams'"), "{error}");
    }
}

#[test]
fn unit_that_cannot_be_parsed_is_an_error() {
    let bytes = bytes_of(MIXED, false).as_bytes().to_vec();
    let needle = b"\"builtin.module\"";
    let at = bytes.windows(needle.len()).position(|part| part == needle);
    let mut broken = bytes;
    broken[at.unwrap()] = b'?';
    let file = BefFile::open(BefBuffer::from_vec(broken)).unwrap();
    let errors = decompile(&file).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("Failed to parse compilation unit.")
    );
}

#[test]
fn files_with_a_wrong_bit_are_refused_or_decompiled() {
    for strip in [false, true] {
        let bytes = bytes_of(MIXED, strip).as_bytes().to_vec();
        let mut n_opened = 0;
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(file) = BefFile::open(BefBuffer::from_vec(changed)) else {
                continue;
            };
            n_opened += 1;
            let Ok(Decompiled { module, .. }) = decompile(&file) else {
                continue;
            };
            let (generic, locations) = (bit % 2 == 0, bit % 3 == 0);
            let text = print(&module, PrintOptions { generic, locations });
            // What it says may be nonsense, such as a function within another.
            let _ = parse(&Source::new("t.mlir", text)).map(|module| {
                let _ = compile(&module, &CompileOptions::default());
            });
            let _ = compile(&module, &CompileOptions { strip });
        }
        assert!(n_opened > 100, "only {n_opened} were opened");
    }
}

#[test]
fn what_a_model_is_called_with_comes_back() {
    check(
        r#"func.func private @main.constants() -> !t.tensor {
             %0 = "k.constant"() : () -> !t.tensor
             tfrt.return %0 : !t.tensor
           }
           func.func @main(%x: !t.tensor, %s: !t.sequence, %c: !t.tensor) -> !t.tensor attributes {
               model.inputs = [["x", tensor<?x3x?xf32>, ["N", 3 : i64, ""]],
                               ["s", !onnx.sequence<tensor<*xi64>>, unit]],
               model.outputs = [["y", tensor<*xf32>, unit]],
               model.properties = ["producer", "a test"]} {
             %y = "k.use"(%x, %s, %c) : (!t.tensor, !t.sequence, !t.tensor) -> !t.tensor
             tfrt.return %y : !t.tensor
           }"#,
        expect![[r#"
            module {
              func.func @main.constants() -> !t.tensor {
                %0 = "k.constant"() : () -> !t.tensor
                tfrt.return %0 : !t.tensor
              }
              func.func @main(%arg0: !t.tensor, %arg1: !t.sequence, %arg2: !t.tensor) -> !t.tensor attributes {model.inputs = [["x", tensor<?x3x?xf32>, ["N", 3, ""]], ["s", !onnx.sequence<tensor<*xi64>>, unit]], model.outputs = [["y", tensor<*xf32>, unit]], model.properties = ["producer", "a test"]} {
                %0 = "k.use"(%arg0, %arg1, %arg2) : (!t.tensor, !t.sequence, !t.tensor) -> !t.tensor
                tfrt.return %0 : !t.tensor
              }
            }
        "#]],
    );
}
