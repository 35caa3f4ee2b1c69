//! Graphs in graphs: branches, loops, scans, sequences; and what is not numbers.

use std::sync::Arc;
use std::time::Duration;

use tfrt::model::{Datum, Outputs};
use tfrt::tensor::{Bool, DenseHostTensor, Element, StringHostTensor, Tensor, TensorShape};
use tfrt::{ErrorCode, MultiThreadedWorkQueue, Runtime};

use super::model;

fn runtime() -> Runtime {
    let queue = MultiThreadedWorkQueue::new(2, 2).unwrap();
    Runtime::builder().queue(Arc::new(queue)).build()
}

fn tensor<T: Element>(runtime: &Runtime, extents: &[usize], elements: &[T]) -> Tensor {
    let allocator = runtime.host().allocator();
    let tensor = DenseHostTensor::from_slice(allocator, extents, elements);
    tensor.unwrap().into()
}

/// Returns the function of a model of these inputs and results, whose body names results `%r0`,
/// `%r1`...
fn function(inputs: &str, results: &str, body: &str) -> String {
    let n_results = results.split(", ").count();
    let list = |text: &str, n: usize| {
        (0..n)
            .map(|index| format!("{text}{index}"))
            .collect::<Vec<_>>()
    };
    let names = list("%r", n_results).join(", ");
    let quoted = |text: &str, n: usize| format!("[\"{}\"]", list(text, n).join("\", \""));
    let (taken, given) = (
        quoted("in", inputs.split(", ").count()),
        quoted("out", n_results),
    );
    format!(
        "module attributes {{onnx.opset = 17 : i64}} {{\n  func.func @main({inputs}) -> ({results}) attributes \
         {{model.input_names = {taken}, model.output_names = {given}}} {{\n{body}\n    func.return {names} : {results}\n  }}\n}}\n"
    )
}

/// Returns a result, which is a tensor.
fn at(outputs: &Outputs, index: usize) -> &Tensor {
    match outputs.iter().nth(index) {
        Some((_, Datum::Tensor(tensor))) => tensor,
        _ => panic!("expected a tensor as result {index}"),
    }
}

/// Calls a model and shows its results.
#[track_caller]
fn check(runtime: &Runtime, text: &str, inputs: &[Tensor], wanted: &[&str]) {
    let model = model(runtime, text);
    let outputs = model.call(&runtime.context(), inputs.to_vec()).wait();
    let outputs = outputs.unwrap_or_else(|error| panic!("{}\n{text}", error.message()));
    let found: Vec<String> = (0..wanted.len())
        .map(|index| {
            let text = at(&outputs, index).to_text().unwrap();
            text.split_once("shape = ").unwrap().1.to_owned()
        })
        .collect();
    assert_eq!(found, wanted, "{text}");
}

#[test]
fn branches_see_values_from_around() {
    let runtime = runtime();
    let text = function(
        "%c: tensor<i1>, %x: tensor<2xi32>",
        "tensor<*xi32>",
        r#"%k = "onnx.Constant"() {value = dense<10> : tensor<i32>} : () -> tensor<i32>
    %r0 = "onnx.If"(%c) ({
      %y = "onnx.Mul"(%x, %k) : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      "graph.yield"(%y) : (tensor<2xi32>) -> ()
    }, {
      %y = "onnx.Concat"(%x, %x) {axis = 0 : i64} : (tensor<2xi32>, tensor<2xi32>) -> tensor<4xi32>
      "graph.yield"(%y) : (tensor<4xi32>) -> ()
    }) : (tensor<i1>) -> tensor<*xi32>"#,
    );
    let x = tensor(&runtime, &[2], &[1_i32, 2]);
    let truth = |value: bool| tensor(&runtime, &[], &[Bool::from(value)]);
    check(
        &runtime,
        &text,
        &[truth(false), x.clone()],
        &["[2], values = [10, 20]"],
    );
    check(
        &runtime,
        &text,
        &[truth(true), x],
        &["[4], values = [1, 2, 1, 2]"],
    );
}

/// Adds the number of the turn; goes on while the sum is below a limit; collects the sums.
const LOOP: &str = r#"%true = "onnx.Constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %start = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %r0, %r1 = "onnx.Loop"(%n, %true, %start) ({
    ^bb0(%turn: tensor<i64>, %condition: tensor<i1>, %sum: tensor<i64>):
      %new = "onnx.Add"(%sum, %turn) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %more = "onnx.Less"(%new, %limit) : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "graph.yield"(%more, %new, %new) : (tensor<i1>, tensor<i64>, tensor<i64>) -> ()
    }) : (tensor<i64>, tensor<i1>, tensor<i64>) -> (tensor<i64>, tensor<?xi64>)"#;

#[test]
fn loops_end_by_their_number_or_their_condition() {
    let runtime = runtime();
    let text = function(
        "%n: tensor<i64>, %limit: tensor<i64>",
        "tensor<i64>, tensor<?xi64>",
        LOOP,
    );
    let number = |value: i64| tensor(&runtime, &[], &[value]);
    let wanted = ["[], values = [6]", "[4], values = [0, 1, 3, 6]"];
    check(&runtime, &text, &[number(4), number(100)], &wanted);
    check(&runtime, &text, &[number(100), number(4)], &wanted);
}

#[test]
fn states_that_no_turn_changes_are_what_they_were_at_first() {
    let runtime = runtime();
    let text = function(
        "%n: tensor<i64>, %x: tensor<1x2xf32>",
        "tensor<1x2xf32>, tensor<2x2xf32>",
        r#"%none = "graph.none"() : () -> none
    %w = "onnx.Constant"() {value = dense<[[0.0, 2.0], [3.0, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %r0, %r1 = "onnx.Loop"(%n, %none, %x, %w) ({
    ^bb0(%turn: tensor<i64>, %condition: tensor<i1>, %v: tensor<1x2xf32>, %same: tensor<2x2xf32>):
      %new = "onnx.MatMul"(%v, %same) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      "graph.yield"(%condition, %new, %same) : (tensor<i1>, tensor<1x2xf32>, tensor<2x2xf32>) -> ()
    }) : (tensor<i64>, none, tensor<1x2xf32>, tensor<2x2xf32>) -> (tensor<1x2xf32>, tensor<2x2xf32>)"#,
    );
    let weights = "[2, 2], values = [0.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00]";
    for (n, expected) in [
        (0_i64, "[1, 2], values = [1.000000e+00, 5.000000e+00]"),
        (3, "[1, 2], values = [9.000000e+01, 1.200000e+01]"),
    ] {
        let inputs = [
            tensor(&runtime, &[], &[n]),
            tensor(&runtime, &[1, 2], &[1.0_f32, 5.0]),
        ];
        check(&runtime, &text, &inputs, &[expected, weights]);
    }
}

#[test]
fn loops_of_many_turns_take_no_stack() {
    let runtime = runtime();
    let text = function(
        "%n: tensor<i64>, %limit: tensor<i64>",
        "tensor<i64>, tensor<?xi64>",
        LOOP,
    );
    let number = |value: i64| tensor(&runtime, &[], &[value]);
    let model = model(&runtime, &text);
    let inputs = vec![number(20_000), number(i64::MAX)];
    let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
    let sums = at(&outputs, 1).as_dense().unwrap().read().unwrap();
    assert_eq!(sums.elements::<i64>().unwrap().last(), Some(&199_990_000));
}

#[test]
fn loops_without_an_end_end_with_their_request() {
    let runtime = runtime();
    let text = function(
        "%x: tensor<i64>",
        "tensor<i64>",
        r#"%none = "graph.none"() : () -> none
    %r0 = "onnx.Loop"(%none, %none, %x) ({
    ^bb0(%turn: tensor<i64>, %condition: tensor<i1>, %sum: tensor<i64>):
      "graph.yield"(%condition, %sum) : (tensor<i1>, tensor<i64>) -> ()
    }) : (none, none, tensor<i64>) -> tensor<i64>"#,
    );
    let model = model(&runtime, &text);
    let context = runtime
        .context_builder()
        .deadline(Duration::from_millis(50))
        .build();
    let error = model
        .call(&context, vec![tensor(&runtime, &[], &[1_i64])])
        .wait()
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
}

#[test]
fn loops_without_a_turn_collect_nothing_of_a_type() {
    let runtime = runtime();
    let text = function(
        "%n: tensor<i64>, %limit: tensor<i64>",
        "tensor<i64>, tensor<?xi64>",
        LOOP,
    );
    let inputs = [
        tensor(&runtime, &[], &[0_i64]),
        tensor(&runtime, &[], &[9_i64]),
    ];
    check(
        &runtime,
        &text,
        &inputs,
        &["[], values = [0]", "[0], values = []"],
    );
}

#[test]
fn scans_go_through_tensors_either_way() {
    let runtime = runtime();
    let scan = |attributes: &str| {
        let body = format!(
            r#"%r0, %r1 = "onnx.Scan"(%s, %x) ({{
    ^bb0(%sum: tensor<2xi32>, %slice: tensor<2xi32>):
      %new = "onnx.Add"(%sum, %slice) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      "graph.yield"(%new, %new) : (tensor<2xi32>, tensor<2xi32>) -> ()
    }}) {{num_scan_inputs = 1 : i64{attributes}}} : (tensor<2xi32>, tensor<?x?xi32>) -> (tensor<2xi32>, tensor<?x?xi32>)"#
        );
        function(
            "%s: tensor<2xi32>, %x: tensor<?x?xi32>",
            "tensor<2xi32>, tensor<?x?xi32>",
            &body,
        )
    };
    let start = tensor(&runtime, &[2], &[100_i32, 200]);
    let x = tensor(&runtime, &[3, 2], &[1_i32, 2, 3, 4, 5, 6]);
    let wanted = [
        "[2], values = [109, 212]",
        "[3, 2], values = [101, 202, 104, 206, 109, 212]",
    ];
    check(&runtime, &scan(""), &[start.clone(), x.clone()], &wanted);
    let backward = ", scan_input_directions = [1 : i64], scan_output_directions = [1 : i64]";
    let wanted = [
        "[2], values = [109, 212]",
        "[3, 2], values = [109, 212, 108, 210, 105, 206]",
    ];
    check(&runtime, &scan(backward), &[start.clone(), x], &wanted);
    let columns = ", scan_input_axes = [-1 : i64], scan_output_axes = [1 : i64]";
    let x = tensor(&runtime, &[2, 3], &[1_i32, 3, 5, 2, 4, 6]);
    let wanted = [
        "[2], values = [109, 212]",
        "[2, 3], values = [101, 104, 109, 202, 206, 212]",
    ];
    check(&runtime, &scan(columns), &[start, x], &wanted);
}

#[test]
fn sequences_are_made_mapped_and_joined() {
    let runtime = runtime();
    let text = function(
        "%x: tensor<?xi32>, %k: tensor<i32>",
        "tensor<?xi32>, tensor<i64>, tensor<*xi32>",
        r#"%parts = "onnx.SplitToSequence"(%x, %k) {axis = 0 : i64} : (tensor<?xi32>, tensor<i32>) -> !onnx.sequence<tensor<?xi32>>
    %more = "onnx.SequenceInsert"(%parts, %x) : (!onnx.sequence<tensor<?xi32>>, tensor<?xi32>) -> !onnx.sequence<tensor<?xi32>>
    %scaled = "onnx.SequenceMap"(%more) ({
    ^bb0(%part: tensor<?xi32>):
      %y = "onnx.Mul"(%part, %k) : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
      "graph.yield"(%y) : (tensor<?xi32>) -> ()
    }) : (!onnx.sequence<tensor<?xi32>>) -> !onnx.sequence<tensor<?xi32>>
    %r0 = "onnx.ConcatFromSequence"(%scaled) {axis = 0 : i64} : (!onnx.sequence<tensor<?xi32>>) -> tensor<?xi32>
    %r1 = "onnx.SequenceLength"(%scaled) : (!onnx.sequence<tensor<?xi32>>) -> tensor<i64>
    %last = "onnx.Constant"() {value = dense<-2> : tensor<i64>} : () -> tensor<i64>
    %r2 = "onnx.SequenceAt"(%scaled, %last) : (!onnx.sequence<tensor<?xi32>>, tensor<i64>) -> tensor<*xi32>"#,
    );
    let inputs = [
        tensor(&runtime, &[3], &[1_i32, 2, 3]),
        tensor(&runtime, &[], &[2_i32]),
    ];
    let wanted = [
        "[6], values = [2, 4, 6, 2, 4, 6]",
        "[], values = [3]",
        "[1], values = [6]",
    ];
    check(&runtime, &text, &inputs, &wanted);
}

#[test]
fn strings_are_joined_cut_moved_and_looked_at() {
    let runtime = runtime();
    let text = function(
        "%x: tensor<?x!onnx.string>, %y: tensor<?x!onnx.string>",
        "tensor<?x!onnx.string>, tensor<*x!onnx.string>, tensor<?xi64>, tensor<?xi1>, tensor<?x!onnx.string>",
        r#"%r0 = "onnx.StringConcat"(%x, %y) : (tensor<?x!onnx.string>, tensor<?x!onnx.string>) -> tensor<?x!onnx.string>
    %r1, %r2 = "onnx.StringSplit"(%r0) : (tensor<?x!onnx.string>) -> (tensor<*x!onnx.string>, tensor<?xi64>)
    %r3 = "onnx.RegexFullMatch"(%r0) {pattern = "[a-z ]+c"} : (tensor<?x!onnx.string>) -> tensor<?xi1>
    %order = "onnx.Constant"() {value = dense<[1, 0, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
    %r4 = "onnx.Gather"(%x, %order) : (tensor<?x!onnx.string>, tensor<3xi64>) -> tensor<?x!onnx.string>"#,
    );
    let strings = |list: &[&str]| -> Tensor {
        let shape = TensorShape::new(&[list.len()]).unwrap();
        let list = list
            .iter()
            .map(|string| string.as_bytes().to_vec())
            .collect();
        StringHostTensor::new(shape, list).unwrap().into()
    };
    check(
        &runtime,
        &text,
        &[strings(&["a b", "é"]), strings(&[" c"])],
        &[
            r#"[2], values = ["a b c", "é c"]"#,
            r#"[2, 3], values = ["a", "b", "c", "é", "c", ""]"#,
            "[2], values = [3, 2]",
            "[2], values = [1, 0]",
            r#"[3], values = ["é", "a b", "é"]"#,
        ],
    );
}
