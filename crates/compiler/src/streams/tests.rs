//! Tests of the analysis on worked examples.

use expect_test::{Expect, expect};
use tfrt_ir::{Source, parse};

use super::*;

/// Shows the streams of the last function of a program.
fn check(text: &str, expect: Expect) {
    let source = Source::new("test.mlir", text);
    let module = parse(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let function = module.children(module.top()).last().unwrap();
    let block = module
        .entry_block(module.op(function).regions()[0])
        .unwrap();
    let analysis = StreamAnalysis::new(&module, block);
    let line = |name: &str, stream: Stream| {
        let parent = stream
            .parent
            .map_or("none".to_owned(), |parent| parent.to_string());
        format!(
            "{name}: stream {}, cost {}, parent {parent}\n",
            stream.id, stream.cost
        )
    };
    let mut lines = line("root", analysis.root());
    for (position, op) in module.block(block).operations().iter().enumerate() {
        lines += &line(module.op(*op).name(), analysis.stream(position));
    }
    expect.assert_eq(&lines);
}

#[test]
fn every_operation_costs_one_by_default() {
    check(
        r"
func.func @order() {
  %c = tfrt.new.chain
  %1 = tfrt.constant.i32 1
  %2 = tfrt.constant.i32 2
  %3 = tfrt.constant.i32 3
  tfrt.print.i32 %1, %c
  tfrt.print.i32 %2, %c
  tfrt.print.i32 %3, %c
  tfrt.return
}",
        expect![[r#"
            root: stream 3, cost 3, parent none
            tfrt.new.chain: stream 4, cost 1, parent 3
            tfrt.constant.i32: stream 3, cost 3, parent none
            tfrt.constant.i32: stream 2, cost 2, parent 3
            tfrt.constant.i32: stream 1, cost 2, parent 3
            tfrt.print.i32: stream 3, cost 3, parent none
            tfrt.print.i32: stream 2, cost 2, parent 3
            tfrt.print.i32: stream 1, cost 2, parent 3
            tfrt.return: stream 0, cost 1, parent 3
        "#]],
    );
}

#[test]
fn the_first_of_equal_operands_is_the_parent() {
    check(
        r"
module attributes {tfrt.cost_threshold = 5 : i64} {
func.func @three() -> (i32, i32, i32) attributes {tfrt.cost_threshold = 10 : i64} {
  %0 = tfrt.constant.i32 0
  %1 = tfrt.constant.i32 1
  %2 = tfrt.constant.i32 2
  tfrt.return %0, %1, %2 : i32, i32, i32
}
}",
        expect![[r#"
            root: stream 0, cost 12, parent none
            tfrt.constant.i32: stream 0, cost 12, parent none
            tfrt.constant.i32: stream 2, cost 10, parent 0
            tfrt.constant.i32: stream 1, cost 10, parent 0
            tfrt.return: stream 0, cost 12, parent none
        "#]],
    );
}

/// Writes an operation of a stated cost on `operands`.
fn costing(result: &str, cost: i64, operands: &str) -> String {
    let types = vec!["i32"; operands.split(',').count()].join(", ");
    format!(
        "  {result} = tfrt_test.test_cost {operands} {{id = 0 : i64, _tfrt_cost = {cost} : i64}} \
         : {types}\n"
    )
}

#[test]
fn cheap_siblings_are_merged_up_to_the_threshold() {
    let mut text =
        "func.func @f(%x: i32) -> i32 attributes {tfrt.cost_threshold = 10 : i64} {\n".to_owned();
    for (index, cost) in [4, 4, 11, 4, 4].into_iter().enumerate() {
        text += &costing(&format!("%c{}", index + 1), cost, "%x");
    }
    text += &costing("%all", 1, "%c1, %c2, %c3, %c4, %c5");
    text += "  tfrt.return %all : i32\n}\n";
    check(
        &text,
        expect![[r#"
            root: stream 0, cost 18, parent none
            tfrt_test.test_cost: stream 4, cost 12, parent 0
            tfrt_test.test_cost: stream 4, cost 12, parent 0
            tfrt_test.test_cost: stream 0, cost 18, parent none
            tfrt_test.test_cost: stream 4, cost 12, parent 0
            tfrt_test.test_cost: stream 0, cost 18, parent none
            tfrt_test.test_cost: stream 0, cost 18, parent none
            tfrt.return: stream 0, cost 18, parent none
        "#]],
    );
}

#[test]
fn expensive_streams_take_no_more() {
    let mut text = "func.func @f(%x: i32) -> i32 attributes {tfrt.cost_threshold = 1 : i64, \
                    tfrt.upper_cost_threshold = 17 : i64} {\n"
        .to_owned();
    text += &costing("%1", 8, "%x");
    text += &costing("%2", 8, "%1");
    text += &costing("%3", 8, "%2");
    text += &costing("%4", 8, "%3");
    text += "  tfrt.return %4 : i32\n}\n";
    check(
        &text,
        expect![[r#"
            root: stream 1, cost 17, parent none
            tfrt_test.test_cost: stream 1, cost 17, parent none
            tfrt_test.test_cost: stream 1, cost 17, parent none
            tfrt_test.test_cost: stream 0, cost 17, parent 1
            tfrt_test.test_cost: stream 0, cost 17, parent 1
            tfrt.return: stream 0, cost 17, parent 1
        "#]],
    );
}

#[test]
fn dependent_siblings_are_merged_if_asked_for() {
    let program = |merge: bool| {
        let mut text = format!(
            "func.func @f(%x: i32) -> i32 attributes {{tfrt.cost_threshold = 10 : i64, \
             tfrt.merge_inter_dependent_streams = {merge}}} {{\n"
        );
        text += &costing("%1", 6, "%x");
        text += &costing("%2", 6, "%x");
        text += &costing("%3", 6, "%x");
        text += &costing("%4", 8, "%x");
        text += &costing("%5", 9, "%1, %4");
        text += "  tfrt.return %5 : i32\n}\n";
        text
    };
    check(
        &program(false),
        expect![[r#"
            root: stream 0, cost 25, parent none
            tfrt_test.test_cost: stream 3, cost 12, parent 0
            tfrt_test.test_cost: stream 3, cost 12, parent 0
            tfrt_test.test_cost: stream 0, cost 25, parent none
            tfrt_test.test_cost: stream 0, cost 25, parent none
            tfrt_test.test_cost: stream 0, cost 25, parent none
            tfrt.return: stream 0, cost 25, parent none
        "#]],
    );
    check(
        &program(true),
        expect![[r#"
            root: stream 0, cost 25, parent none
            tfrt_test.test_cost: stream 0, cost 25, parent none
            tfrt_test.test_cost: stream 2, cost 12, parent 0
            tfrt_test.test_cost: stream 2, cost 12, parent 0
            tfrt_test.test_cost: stream 0, cost 25, parent none
            tfrt_test.test_cost: stream 0, cost 25, parent none
            tfrt.return: stream 0, cost 25, parent none
        "#]],
    );
}

#[test]
fn options_of_the_wrong_kind_are_ignored() {
    check(
        r#"
module attributes {tfrt.cost_threshold = "ten", tfrt.merge_inter_dependent_streams = 1 : i32} {
func.func @f() attributes {tfrt.upper_cost_threshold = true, tfrt.cost_threshold = -4 : i64} {
  %0 = tfrt.constant.i32 0
  tfrt.return
}
}"#,
        expect![[r#"
            root: stream 1, cost 2, parent none
            tfrt.constant.i32: stream 1, cost 2, parent none
            tfrt.return: stream 0, cost 1, parent 1
        "#]],
    );
}
