//! `tfrt run` of models in steps, with state from one to the next.

use serde_json::{Value as Json, json};

use super::command::Folder;
use super::state::{COUNTER, DECODER, recurrent};

/// Adds up all that it has seen, but for what is masked.
const MASKED: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?xf32>, %mask: tensor<?xf32>, %past: tensor<?xf32>) -> (tensor<1xf32>, tensor<?xf32>)
      attributes {model.input_names = ["x", "mask", "past"], model.output_names = ["y", "present"],
                  model.input_dims = [["S"], ["P + S"], ["P"]], model.output_dims = [[1 : i64], ["P + S"]]} {
    %all = "onnx.Concat"(%past, %x) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %seen = "onnx.Mul"(%all, %mask) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %y = "onnx.ReduceSum"(%seen) {keepdims = 1 : i64} : (tensor<?xf32>) -> tensor<1xf32>
    func.return %y, %all : tensor<1xf32>, tensor<?xf32>
  }
}
"#;

/// Gives the first and the last of its elements, and how many it has seen.
const WINDOW: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<1x4xf32>, %seen: tensor<1xf32>) -> (tensor<2xf32>, tensor<1xf32>)
      attributes {model.input_names = ["x", "seen"], model.output_names = ["y", "now"]} {
    %ends = "onnx.Constant"() {value = dense<[0, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
    %z = "onnx.Gather"(%x, %ends) {axis = 1 : i64} : (tensor<1x4xf32>, tensor<2xi64>) -> tensor<1x2xf32>
    %axes = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %y = "onnx.Squeeze"(%z, %axes) : (tensor<1x2xf32>, tensor<1xi64>) -> tensor<2xf32>
    %four = "onnx.Constant"() {value = dense<4.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %now = "onnx.Add"(%seen, %four) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    func.return %y, %now : tensor<2xf32>, tensor<1xf32>
  }
}
"#;

#[test]
fn pieces_begin_with_what_was_before_and_the_last_is_filled() {
    let folder = Folder::new("steps-behind");
    folder.write("window.mlir", WINDOW);
    folder.write("x.json", "[[1, 2, 3, 4, 5, 6, 7]]");
    let line = "run window.mlir --state now=seen --input x=x.json --steps x=1:3+1";
    let wanted = "y: f32 [3, 2] = [[0, 3], [3, 6], [6, 0]]";
    assert_eq!(printed(&folder, line), wanted);
    // Without what was before the last is filled all the same.
    let line = "run window.mlir --state now=seen --input x=x.json --steps x=1:4+0";
    let wanted = "y: f32 [2, 2] = [[1, 4], [5, 0]]";
    assert_eq!(printed(&folder, line), wanted);
}

/// A folder with models that have state.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("counter.mlir", COUNTER);
    folder.write("decoder.mlir", DECODER);
    folder.write("lstm.mlir", recurrent());
    folder
}

/// Returns what a command line prints, each output on a line.
fn printed(folder: &Folder, line: &str) -> String {
    let text = folder.printed(line);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn json_of(folder: &Folder, name: &str) -> Json {
    serde_json::from_slice(&folder.read(name)).unwrap()
}

const COUNTER_LINE: &str = "run counter.mlir --state next=count";

#[test]
fn input_with_one_dimension_more_has_a_step_in_each_element() {
    let folder = folder("steps-extra");
    folder.write("three.json", "[[1], [2], [30]]");
    let line = format!("{COUNTER_LINE} --input x=three.json");
    assert_eq!(
        printed(&folder, &line),
        "sum: f32 [3, 1] = [[2], [4], [33]]"
    );
    // The first two.
    let line = format!("{line} --steps 2 --output next=next.json");
    assert_eq!(printed(&folder, &line), "sum: f32 [2, 1] = [[2], [4]]");
    assert_eq!(json_of(&folder, "next.json"), json!([2.0]));
    // Where the last steps have ended, these go on.
    let line = format!("{COUNTER_LINE} --input x=three.json --input count=next.json");
    assert_eq!(
        printed(&folder, &line),
        "sum: f32 [3, 1] = [[4], [6], [35]]"
    );
    folder.printed("compile counter.mlir");
    let compiled = line.replace("counter.mlir", "counter.bef");
    assert_eq!(folder.printed(&compiled), folder.printed(&line));
    let line = format!("{line} --queue single --json");
    let document: Json = serde_json::from_str(&folder.printed(&line)).unwrap();
    assert_eq!(document["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(document["outputs"][0]["shape"], json!([3, 1]));
}

#[test]
fn caches_have_room_for_so_many() {
    let folder = folder("steps-room");
    folder.write("x.json", "[[[1, 2], [3, 4], [5, 6], [0, 1]]]");
    let line = "run decoder.mlir --state present.{i}.kv=past.{i}.kv --input x=x.json --steps S";
    let plain = printed(&folder, &format!("{line} --output present.1.kv=plain.json"));
    let roomy = format!("{line} --max-length 4 --output present.1.kv=roomy.json");
    assert_eq!(printed(&folder, &roomy), plain);
    assert_eq!(
        json_of(&folder, "roomy.json"),
        json_of(&folder, "plain.json")
    );
    // What a run has left has room in the next.
    let next =
        format!("{line} --max-length 8 --input past.0.kv=roomy.json --input past.1.kv=roomy.json");
    printed(&folder, &next);
    let message = folder.refused(&format!("{line} --max-length 3"), 3);
    let expected =
        ".kv' has room for 3 along dimension 1, and 4 are needed: for f32 [1, 3, 2] and 1 more";
    assert!(message.contains(expected), "{message}");
    let message = folder.refused("run lstm.mlir --random --max-length 3", 2);
    assert!(message.contains("--state"), "{message}");
}

#[test]
fn one_call_keeps_its_outputs_as_they_are() {
    let folder = folder("steps-one");
    folder.write("x.json", "[5, 6]");
    let line = format!("{COUNTER_LINE} --input x=x.json");
    assert_eq!(printed(&folder, &line), "sum: f32 [2] = [6, 7]");
    let line =
        format!("{COUNTER_LINE} --random --steps 4 --output next=next.json --output sum=s.npy");
    assert_eq!(folder.printed(&line), "");
    assert_eq!(json_of(&folder, "next.json"), json!([4.0]));
    // Without state, too.
    folder.write("c.json", "[1, 1]");
    let line = "run counter.mlir --steps 2 --input x=x.json --input count=c.json";
    let expected = "next: f32 [2, 2] = [[2, 2], [2, 2]] sum: f32 [2, 2] = [[7, 8], [7, 8]]";
    assert_eq!(printed(&folder, line), expected);
}

#[test]
fn input_is_cut_along_a_dimension_and_outputs_are_joined() {
    let folder = folder("steps-cut");
    folder.write("x.json", "[10, 20, 30, 40]");
    for (steps, expected) in [
        ("N", "sum: f32 [4] = [11, 22, 33, 44]"),
        ("N:2", "sum: f32 [4] = [11, 21, 32, 42]"),
        ("x=N:2", "sum: f32 [4] = [11, 21, 32, 42]"),
        ("x=0:4", "sum: f32 [4] = [11, 21, 31, 41]"),
        ("x=0 --steps 3", "sum: f32 [3] = [11, 22, 33]"),
    ] {
        let line = format!("{COUNTER_LINE} --input x=x.json --steps {steps}");
        assert_eq!(printed(&folder, &line), expected, "{steps}");
    }
    let line = "run lstm.mlir --state hn=h --state cn=c --input x=seq.json --output y=steps.json \
                --output hn=hn.json --steps T";
    folder.write("seq.json", "[[[1,2,3]],[[0,-1,0.5]],[[2,2,-2]]]");
    folder.printed(line);
    folder.write("zeros.json", "[[[0, 0]]]");
    let whole = "run lstm.mlir --input x=seq.json --input h=zeros.json --input c=zeros.json --output y=whole.json \
                 --output hn=h1.json --output cn=c1.json";
    folder.printed(whole);
    let numbers = |name: &str| -> Vec<f64> {
        let text = String::from_utf8(folder.read(name)).unwrap();
        let parts = text.split(|c: char| "[], \n".contains(c));
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    for (steps, whole) in [("steps.json", "whole.json"), ("hn.json", "h1.json")] {
        let (steps, whole) = (numbers(steps), numbers(whole));
        assert_eq!(steps.len(), whole.len());
        let mut pairs = steps.iter().zip(&whole);
        assert!(
            pairs.all(|(a, b)| (a - b).abs() < 1e-6),
            "{steps:?} {whole:?}"
        );
    }
}

#[test]
fn caches_of_all_layers_grow() {
    let folder = folder("steps-cache");
    folder.write("x.json", "[[[1,2],[0,1],[3,0],[1,1],[2,2]]]");
    let line = "run decoder.mlir --state present.{i}.kv=past.{i}.kv --input x=x.json --steps S";
    let shown = printed(&folder, line);
    assert!(shown.starts_with("y: f32 [1, 5, 2] = "), "{shown}");
    assert!(!shown.contains("present"), "{shown}");
    folder.printed(&format!(
        "{line} --output y=y.npy --output present.1.kv=kv.json"
    ));
    // Twice what it was given.
    let expected = json!([[[2.0, 4.0], [0.0, 2.0], [6.0, 0.0], [2.0, 2.0], [4.0, 4.0]]]);
    assert_eq!(json_of(&folder, "kv.json"), expected);
}

#[test]
fn mask_is_as_long_as_what_the_cache_has_seen() {
    let folder = folder("steps-mask");
    folder.write("masked.mlir", MASKED);
    folder.write("x.json", "[1, 10, 100, 1000]");
    folder.write("mask.json", "[1, 0, 1, 1]");
    let line =
        "run masked.mlir --state present=past --input x=x.json --input mask=mask.json --steps";
    for (steps, expected) in [
        ("S", "y: f32 [4, 1] = [[1], [1], [101], [1101]]"),
        ("S:3", "y: f32 [2, 1] = [[101], [1101]]"),
    ] {
        assert_eq!(printed(&folder, &format!("{line} {steps}")), expected);
    }
    folder.write("two.json", "[3, 4]");
    folder.write("mask.json", "[1, 1, 1, 0, 1, 1]");
    let given = format!("{line} S --input past=two.json");
    let expected = "y: f32 [4, 1] = [[8], [8], [108], [1108]]";
    assert_eq!(printed(&folder, &given), expected);
    folder.write("mask.json", "[1, 1]");
    let found = folder.refused(&format!("{line} S"), 2);
    let said = "input 'mask' is for all that the steps have seen: dimension 0 has 2 elements, expected at least 4";
    assert!(found.contains(said), "{found}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = folder("steps-refused");
    folder.write("x.json", "[1, 2, 3]");
    folder.write("xs.json", "[[1], [2], [3]]");
    folder.write("none.json", r#"{"shape": [0, 1], "data": []}"#);
    folder.write("count.json", "[[1]]");
    folder.write("seq.json", "[[[[1,2,3]]]]");
    for (line, status, said) in [
        (
            "--state next",
            2,
            "--state takes OUTPUT=INPUT, found 'next'",
        ),
        (
            "--state nxt=count",
            2,
            "the model has no output 'nxt': it gives next, sum; there is an output 'next'",
        ),
        (
            "--state next=cont",
            2,
            "the model has no input 'cont': it takes x, count; there is an input 'count'",
        ),
        (
            "--state next=count --state sum=count",
            2,
            "output 'sum' can't be the state of input 'count': output 'next' is the state of input 'count' already",
        ),
        (
            "--state next=count",
            2,
            "the model takes the input x: f32 [N]: give it with --input NAME=FILE",
        ),
        (
            "--state next=count --input x=xs.json --steps 0",
            2,
            "at least 1: found 0",
        ),
        (
            "--state next=count --input x=xs.json --steps 5",
            2,
            "--steps 5 is more than the 3 that input 'x' has",
        ),
        (
            "--state next=count --input x=x.json --steps M",
            2,
            "--steps takes a number of steps, or a dimension of inputs that are no state, found 'M': the model has the \
             input x: f32 [N]",
        ),
        (
            "--state next=count --input x=x.json --steps x=1",
            2,
            "found 'x=1'",
        ),
        (
            "--state next=count --input x=x.json --steps count=0",
            2,
            "found 'count=0'",
        ),
        (
            "--state next=count --input x=x.json --steps N --steps x=0",
            2,
            "input 'x' is cut by --steps twice",
        ),
        (
            "--state next=count --input x=none.json",
            2,
            "input 'x' has no steps: dimension 0 has 0 elements",
        ),
        (
            "--state next=count --input x=x.json --input count=count.json",
            1,
            "input 'count' was expected to be f32 [N], found f32 [1, 1]",
        ),
        (
            "--state next=count --input x=seq.json",
            1,
            "input 'x' was expected to be f32 [N], found f32 [1, 1, 1, 3]",
        ),
        (
            "--state next=count --input x=xs.json --steps x=0",
            2,
            "input 'x' has one dimension more than the model takes, that of the steps, and is cut by --steps along another",
        ),
        (
            "--input x=xs.json --input count=count.json --steps 1",
            2,
            "input 'count' has 1 steps, but input 'x' has 3",
        ),
        // The state has two elements after the first step, and the last has one.
        (
            "--state next=count --input x=x.json --steps N:2",
            3,
            "input 'count' was expected to be f32 [N], found f32 [2]: N is 2 here, but 1 in input 'x'",
        ),
    ] {
        let found = folder.refused(&format!("run counter.mlir {line}"), status);
        assert!(found.contains(said), "{line}: {found}");
    }
    let found = folder.refused("run counter.mlir --function main --state next=count", 2);
    assert!(found.contains("are for models as a whole"), "{found}");
}
