//! Tests of programs before and after `sequence-effects`.

use expect_test::{Expect, expect};

use crate::passes::testing;

fn check(text: &str, expected: Expect) {
    let text = text
        .replace("CREATE", "\"tfrt_test.atomic.create.i32\"() : () -> !A")
        .replace("INC(", "\"tfrt_test.atomic.inc.i32\"(")
        .replace("GET(", "\"tfrt_test.atomic.get.i32\"(")
        .replace(")+", ") : (!A) -> ()")
        .replace(")?", ") : (!A) -> i32")
        .replace("!A", "!test.atomic.i32");
    testing::check("sequence-effects", &text, expected);
}

#[test]
fn prints_keep_their_order() {
    check(
        r#"func.func @main() {
             %a = tfrt.constant.i32 1
             %b = tfrt.constant.f32 2.0
             tfrt.print.i32 %a
             tfrt.print.f32 %b
             "tfrt_test.print_hello"() : () -> ()
             tfrt.return
           }"#,
        expect![[r#"
            func.func @main() -> !tfrt.chain {
              %0 = tfrt.constant.i32 1
              %1 = tfrt.constant.f32 2.000000e+00
              %2 = tfrt.new.chain
              %3 = tfrt.print.i32 %0, %2
              %4 = tfrt.print.f32 %1, %3
              %5 = "tfrt_test.print_hello"(%4) : (!tfrt.chain) -> !tfrt.chain
              tfrt.return %5 : !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn tensors_are_buffers_and_shapes_are_values() {
    check(
        r#"func.func @main() {
             %s = ts.build_shape [2 : i64]
             %t = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
             tfrt_dht.fill_tensor_with_constant.i32 %t 1 : i32
             ts.print_shape %s
             tfrt_dht.print_tensor %t
             tfrt.return
           }"#,
        expect![[r#"
            func.func @main() -> !tfrt.chain {
              %0 = ts.build_shape [2]
              %1 = tfrt_dht.create_uninitialized_tensor.i32.1 [2]
              %2 = tfrt.new.chain
              %3 = tfrt_dht.fill_tensor_with_constant.i32 %1, %2 1 : i32
              %4 = ts.print_shape %0, %2
              %5 = tfrt.merge.chains %3, %4 : !tfrt.chain, !tfrt.chain
              %6 = tfrt_dht.print_tensor %1, %5
              tfrt.return %6 : !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn readers_wait_for_the_writer_and_the_next_writer_for_both() {
    check(
        r#"func.func @main() -> (i32, i32) {
             %a = CREATE
             INC(%a)+
             %x = GET(%a)?
             %y = GET(%a)?
             INC(%a)+
             tfrt.return %x, %y : i32, i32
           }"#,
        expect![[r#"
            func.func @main() -> (i32, i32) {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1 = "tfrt_test.atomic.inc.i32"(%0) : (!test.atomic.i32) -> !tfrt.chain
              %2:2 = "tfrt_test.atomic.get.i32"(%0, %1) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %3:2 = "tfrt_test.atomic.get.i32"(%0, %1) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %4 = tfrt.merge.chains %2#1, %3#1 : !tfrt.chain, !tfrt.chain
              %5 = "tfrt_test.atomic.inc.i32"(%0, %4) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
              tfrt.return %2#0, %3#0 : i32, i32
            }
        "#]],
    );
}

#[test]
fn different_buffers_do_not_order_each_other() {
    check(
        r#"func.func @main() -> (i32, i32) {
             %a = CREATE
             %b = CREATE
             INC(%a)+
             INC(%b)+
             %x = GET(%b)?
             %y = GET(%a)?
             tfrt.return %x, %y : i32, i32
           }"#,
        expect![[r#"
            func.func @main() -> (i32, i32) {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %2 = "tfrt_test.atomic.inc.i32"(%0) : (!test.atomic.i32) -> !tfrt.chain
              %3 = "tfrt_test.atomic.inc.i32"(%1) : (!test.atomic.i32) -> !tfrt.chain
              %4:2 = "tfrt_test.atomic.get.i32"(%1, %3) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %5:2 = "tfrt_test.atomic.get.i32"(%0, %2) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              tfrt.return %4#0, %5#0 : i32, i32
            }
        "#]],
    );
}

#[test]
fn what_data_orders_takes_no_chain() {
    check(
        r#"func.func @main() {
             %a = CREATE
             %x = GET(%a)?
             "tfrt_test.atomic.add.i32"(%a, %x) : (!A, i32) -> ()
             tfrt.return
           }"#,
        expect![[r#"
            func.func @main() {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1:2 = "tfrt_test.atomic.get.i32"(%0) : (!test.atomic.i32) -> (i32, !tfrt.chain)
              %2 = "tfrt_test.atomic.add.i32"(%0, %1#0) : (!test.atomic.i32, i32) -> !tfrt.chain
              tfrt.return
            }
        "#]],
    );
}

#[test]
fn mutable_operands_of_what_nobody_knows_are_changed() {
    check(
        r#"func.func @main() -> i32 {
             %a = CREATE
             INC(%a)+
             %y = "my.stir"(%a) : (!A) -> i32
             %x = GET(%a)?
             %c = "my.careful"(%a) : (!A) -> !tfrt.chain
             tfrt.return %x : i32
           }"#,
        expect![[r#"
            func.func @main() -> (i32, !tfrt.chain) {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1 = "tfrt_test.atomic.inc.i32"(%0) : (!test.atomic.i32) -> !tfrt.chain
              %2 = "tfrt.alias.value"(%1, %0) : (!tfrt.chain, !test.atomic.i32) -> !test.atomic.i32
              %3 = "my.stir"(%2) : (!test.atomic.i32) -> i32
              %4 = tfrt.merge.chains %3 : i32
              %5:2 = "tfrt_test.atomic.get.i32"(%0, %4) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %6 = "tfrt.alias.value"(%5#1, %0) : (!tfrt.chain, !test.atomic.i32) -> !test.atomic.i32
              %7 = "my.careful"(%6) : (!test.atomic.i32) -> !tfrt.chain
              tfrt.return %5#0, %7 : i32, !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn calls_do_what_their_functions_do() {
    check(
        r#"func.func private @reads(%a: !A) -> i32 {
             %x = GET(%a)?
             tfrt.return %x : i32
           }
           func.func private @writes(%a: !A) {
             INC(%a)+
             tfrt.return
           }
           func.func private @pure(%x: i32) -> i32 {
             %y = tfrt.add.i32 %x, %x
             tfrt.return %y : i32
           }
           func.func private @new() -> !A {
             %a = CREATE
             INC(%a)+
             tfrt.return %a : !A
           }
           func.func @main() -> (i32, i32, i32) {
             %a = tfrt.call @new() : () -> !A
             %x = tfrt.call @reads(%a) : (!A) -> i32
             %y = tfrt.call @reads(%a) : (!A) -> i32
             tfrt.call @writes(%a) : (!A) -> ()
             %z = tfrt.call @pure(%y) : (i32) -> i32
             tfrt.return %x, %y, %z : i32, i32, i32
           }"#,
        expect![[r#"
            func.func private @reads(%arg0: !test.atomic.i32, %arg1: !tfrt.chain) -> (i32, !tfrt.chain) {
              %0:2 = "tfrt_test.atomic.get.i32"(%arg0, %arg1) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              tfrt.return %0#0, %0#1 : i32, !tfrt.chain
            }
            func.func private @writes(%arg0: !test.atomic.i32, %arg1: !tfrt.chain) -> !tfrt.chain {
              %0 = "tfrt_test.atomic.inc.i32"(%arg0, %arg1) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
              tfrt.return %0 : !tfrt.chain
            }
            func.func private @pure(%arg0: i32) -> i32 {
              %0 = tfrt.add.i32 %arg0, %arg0
              tfrt.return %0 : i32
            }
            func.func private @new(%arg0: !tfrt.chain) -> (!test.atomic.i32, !tfrt.chain) {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1 = "tfrt_test.atomic.inc.i32"(%0, %arg0) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
              tfrt.return %0, %1 : !test.atomic.i32, !tfrt.chain
            }
            func.func @main() -> (i32, i32, i32) {
              %0 = tfrt.new.chain
              %1:2 = tfrt.call @new(%0) : (!tfrt.chain) -> (!test.atomic.i32, !tfrt.chain)
              %2:2 = tfrt.call @reads(%1#0, %1#1) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %3:2 = tfrt.call @reads(%1#0, %1#1) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %4 = tfrt.merge.chains %2#1, %3#1 : !tfrt.chain, !tfrt.chain
              %5 = tfrt.call @writes(%1#0, %4) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
              %6 = tfrt.call @pure(%3#0) : (i32) -> i32
              tfrt.return %2#0, %3#0, %6 : i32, i32, i32
            }
        "#]],
    );
}

#[test]
fn regions_pass_chains_on() {
    check(
        r#"func.func @main(%p: i1, %n: i32) -> i32 {
             %a = CREATE
             INC(%a)+
             tfrt.if %p, %a : (!A) -> () {
               tfrt.print.i1 %p_
               tfrt.return
             } else {
               tfrt.return
             }
             %m, %b = tfrt.repeat.i32 %n, %n, %a : i32, !A {
               INC(%a)+
               %x = GET(%a)?
               tfrt.return %x, %a : i32, !A
             }
             %x = GET(%b)?
             tfrt.return %x : i32
           }"#
        .replace("tfrt.print.i1 %p_", "INC(%a)+")
        .as_str(),
        expect![[r#"
            func.func @main(%arg0: i1, %arg1: i32) -> i32 {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1 = "tfrt_test.atomic.inc.i32"(%0) : (!test.atomic.i32) -> !tfrt.chain
              %2 = tfrt.if %arg0, %0, %1 : (!test.atomic.i32, !tfrt.chain) -> (!tfrt.chain)  {
                %5 = "tfrt_test.atomic.inc.i32"(%0, %1) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
                tfrt.return %5 : !tfrt.chain
              } else  {
                tfrt.return %1 : !tfrt.chain
              }
              %3:3 = tfrt.repeat.i32 %arg1, %arg1, %0, %2 : i32, !test.atomic.i32, !tfrt.chain {
                %5 = "tfrt_test.atomic.inc.i32"(%0, %2) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
                %6:2 = "tfrt_test.atomic.get.i32"(%0, %5) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
                tfrt.return %6#0, %0, %6#1 : i32, !test.atomic.i32, !tfrt.chain
              }
              %4:2 = "tfrt_test.atomic.get.i32"(%3#1, %3#2) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              tfrt.return %4#0 : i32
            }
        "#]],
    );
}

#[test]
fn loops_keep_the_order_of_their_turns() {
    check(
        r#"func.func private @turn(%x: i32) -> (i32, i1) {
             %p = tfrt.constant.i1 false
             tfrt.print.i32 %x
             tfrt.return %x, %p : i32, i1
           }
           func.func @main(%p: i1, %x: i32) -> i32 {
             %r = tfrt.while %p @turn(%x) parallel_iterations(4) : (i32) -> (i32)
             tfrt.print.i32 %x
             tfrt.return %r : i32
           }"#,
        expect![[r#"
            func.func private @turn(%arg0: i32, %arg1: !tfrt.chain) -> (i32, !tfrt.chain, i1) {
              %0 = tfrt.constant.i1 false
              %1 = tfrt.print.i32 %arg0, %arg1
              tfrt.return %arg0, %1, %0 : i32, !tfrt.chain, i1
            }
            func.func @main(%arg0: i1, %arg1: i32) -> (i32, !tfrt.chain) {
              %0 = tfrt.new.chain
              %1:2 = tfrt.while %arg0 @turn(%arg1, %0) parallel_iterations(4) : (i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %2 = tfrt.print.i32 %arg1, %1#1
              tfrt.return %1#0, %2 : i32, !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn turns_wait_for_what_the_one_before_did_to_a_buffer_that_it_hands_on() {
    check(
        r#"func.func private @turn(%a: !A) -> (!A, i1) {
             %x = GET(%a)?
             %p = tfrt.constant.i1 false
             %b = CREATE
             INC(%b)+
             tfrt.return %b, %p : !A, i1
           }
           func.func @main(%p: i1) {
             %a = CREATE
             %r = tfrt.while %p @turn(%a) parallel_iterations(4) : (!A) -> (!A)
             tfrt.return
           }"#,
        expect![[r#"
            func.func private @turn(%arg0: !test.atomic.i32, %arg1: !tfrt.chain) -> (!test.atomic.i32, !tfrt.chain, i1) {
              %0:2 = "tfrt_test.atomic.get.i32"(%arg0, %arg1) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
              %1 = tfrt.constant.i1 false
              %2 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %3 = "tfrt_test.atomic.inc.i32"(%2, %arg1) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
              %4 = tfrt.merge.chains %0#1, %3 : !tfrt.chain, !tfrt.chain
              tfrt.return %2, %4, %1 : !test.atomic.i32, !tfrt.chain, i1
            }
            func.func @main(%arg0: i1) {
              %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
              %1 = tfrt.new.chain
              %2:2 = tfrt.while %arg0 @turn(%0, %1) parallel_iterations(4) : (!test.atomic.i32, !tfrt.chain) -> (!test.atomic.i32, !tfrt.chain)
              tfrt.return
            }
        "#]],
    );
}

#[test]
fn results_of_functions_that_keep_their_signature_wait_for_their_effects() {
    check(
        r#"func.func private @native(i32) -> i32 attributes {tfrt.native}
           func.func @prints(%x: i32) -> i32 {
             tfrt.print.i32 %x
             tfrt.return %x : i32
           }
           func.func @main(%p: i1, %x: i32) -> i32 {
             %r = tfrt.cond %p @native @prints (%x) : (i32) -> (i32)
             tfrt.print.i32 %r
             tfrt.return %r : i32
           }"#,
        expect![[r#"
            func.func private @native(i32) -> i32 attributes {tfrt.native}
            func.func @prints(%arg0: i32) -> i32 {
              %0 = tfrt.new.chain
              %1 = tfrt.print.i32 %arg0, %0
              %2 = "tfrt.alias.value"(%1, %arg0) : (!tfrt.chain, i32) -> i32
              tfrt.return %2 : i32
            }
            func.func @main(%arg0: i1, %arg1: i32) -> (i32, !tfrt.chain) {
              %0 = tfrt.cond %arg0 @native @prints (%arg1) : (i32) -> (i32)
              %1 = tfrt.merge.chains %0 : i32
              %2 = tfrt.print.i32 %0, %1
              tfrt.return %0, %2 : i32, !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn recursion_and_choices_are_seen_through() {
    check(
        r#"func.func private @down(%p: i1, %x: i32) {
             tfrt.print.i32 %x
             tfrt.cond %p @down @stop (%p, %x) : (i1, i32) -> ()
             tfrt.return
           }
           func.func private @stop(%p: i1, %x: i32) {
             tfrt.return
           }
           func.func @main(%p: i1, %x: i32) {
             tfrt.cond %p @down @stop (%p, %x) : (i1, i32) -> ()
             tfrt.print.i32 %x
             tfrt.return
           }"#,
        expect![[r#"
            func.func private @down(%arg0: i1, %arg1: i32, %arg2: !tfrt.chain) -> !tfrt.chain {
              %0 = tfrt.print.i32 %arg1, %arg2
              %1 = tfrt.cond %arg0 @down @stop (%arg0, %arg1, %0) : (i1, i32, !tfrt.chain) -> (!tfrt.chain)
              tfrt.return %1 : !tfrt.chain
            }
            func.func private @stop(%arg0: i1, %arg1: i32, %arg2: !tfrt.chain) -> !tfrt.chain {
              tfrt.return %arg2 : !tfrt.chain
            }
            func.func @main(%arg0: i1, %arg1: i32) -> !tfrt.chain {
              %0 = tfrt.new.chain
              %1 = tfrt.cond %arg0 @down @stop (%arg0, %arg1, %0) : (i1, i32, !tfrt.chain) -> (!tfrt.chain)
              %2 = tfrt.print.i32 %arg1, %1
              tfrt.return %2 : !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn private_arguments_are_the_same_only_if_a_call_makes_them_so() {
    let function = r#"(%a: !A, %b: !A) -> i32 {
             INC(%a)+
             %x = GET(%b)?
             tfrt.return %x : i32
           }
           "#;
    let text = format!(
        r#"func.func private @apart{function}func.func private @same{function}func.func @main() -> (i32, i32) {{
             %a = CREATE
             %b = CREATE
             %x = tfrt.call @apart(%a, %b) : (!A, !A) -> i32
             %y = tfrt.call @same(%a, %a) : (!A, !A) -> i32
             tfrt.return %x, %y : i32, i32
           }}"#
    );
    check(
        &text,
        expect![[r#"
        func.func private @apart(%arg0: !test.atomic.i32, %arg1: !test.atomic.i32, %arg2: !tfrt.chain) -> (i32, !tfrt.chain) {
          %0 = "tfrt_test.atomic.inc.i32"(%arg0, %arg2) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
          %1:2 = "tfrt_test.atomic.get.i32"(%arg1, %arg2) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
          %2 = tfrt.merge.chains %0, %1#1 : !tfrt.chain, !tfrt.chain
          tfrt.return %1#0, %2 : i32, !tfrt.chain
        }
        func.func private @same(%arg0: !test.atomic.i32, %arg1: !test.atomic.i32, %arg2: !tfrt.chain) -> (i32, !tfrt.chain) {
          %0 = "tfrt_test.atomic.inc.i32"(%arg0, %arg2) : (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
          %1:2 = "tfrt_test.atomic.get.i32"(%arg1, %0) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
          tfrt.return %1#0, %1#1 : i32, !tfrt.chain
        }
        func.func @main() -> (i32, i32) {
          %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
          %1 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
          %2 = tfrt.new.chain
          %3:2 = tfrt.call @apart(%0, %1, %2) : (!test.atomic.i32, !test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
          %4:2 = tfrt.call @same(%0, %0, %3#1) : (!test.atomic.i32, !test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
          tfrt.return %3#0, %4#0 : i32, i32
        }
    "#]],
    );
}

#[test]
fn chains_that_are_there_stay() {
    check(
        r#"func.func @main(%x: i32, %c: !tfrt.chain) -> !tfrt.chain {
             %n = tfrt.new.chain
             %d = tfrt.print.i32 %x, %n
             %e = tfrt.print.i32 %x, %c
             tfrt.return %e : !tfrt.chain
           }"#,
        expect![[r#"
            func.func @main(%arg0: i32, %arg1: !tfrt.chain) -> !tfrt.chain {
              %0 = tfrt.new.chain
              %1 = tfrt.print.i32 %arg0, %arg1
              %2 = tfrt.merge.chains %arg1, %1 : !tfrt.chain, !tfrt.chain
              %3 = tfrt.print.i32 %arg0, %2
              tfrt.return %3 : !tfrt.chain
            }
        "#]],
    );
}

#[test]
fn what_gives_nothing_cannot_be_waited_for() {
    check(
        r#"func.func @main(%x: i32) {
             "my.mystery"(%x) : (i32) -> ()
             tfrt.print.i32 %x
             tfrt.return
           }"#,
        expect![[r#"
            test.mlir:2:14: error: 'my.mystery' op has effects that others must wait for, but gives nothing to wait for [TF0514]
              |
            2 |              "my.mystery"(%x) : (i32) -> ()
              |              ^^^^^^^^^^^^
            help: give it a chain as a result
        "#]],
    );
}

#[test]
fn benchmark_prints_besides_what_its_region_does() {
    check(
        r#"func.func @main() {
             %x = tfrt.constant.i32 21
             tfrt.print.i32 %x
             tfrt_test.benchmark "same"(%x : i32) duration_secs = 1, max_count = 2 {
               tfrt.return %x : i32
             }
             tfrt.print.i32 %x
             tfrt.return
           }"#,
        expect![[r#"
            func.func @main() -> !tfrt.chain {
              %0 = tfrt.constant.i32 21
              %1 = tfrt.new.chain
              %2 = tfrt.print.i32 %0, %1
              %3 = tfrt_test.benchmark "same"(%0 : i32, %2 : !tfrt.chain) duration_secs = 1, max_count = 2, num_warmup_runs = 1 {
                tfrt.return %0 : i32
              }
              %4 = tfrt.print.i32 %0, %3
              tfrt.return %4 : !tfrt.chain
            }
        "#]],
    );
}
