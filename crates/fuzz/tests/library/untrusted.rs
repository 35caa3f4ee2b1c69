//! The memory that strangers' programs hold: no more than `docs/limits.md` says, whatever they are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt::input::Input;
use tfrt::ops::names::{self, NameAttr};
use tfrt::{Call, Limits, MultiThreadedWorkQueue, Output, Runtime, Untrusted};
use tfrt_fuzz::hostile::{FILES, TEXTS, pictures};
use tfrt_fuzz::seeds;

use crate::held;
use crate::own_process::in_own_process;

/// The bytes that requests may take here: programs that want more are found soon.
const MAX_MEMORY: usize = 16 << 20;

/// The bounds of `docs/limits.md`: bytes in any case, for each byte of the file, and for each byte of the limit.
const BASE: usize = 64 << 20;
const PER_BYTE: usize = 64;

/// The most bytes, of those in any case, that a program of one operation takes: its lists are to be seen.
const BASE_OF_OPERATION: usize = 8 << 20;

const PER_LIMIT: usize = 4;

/// The lengths of hostile inputs, about.
const LENGTHS: [usize; 2] = [1 << 12, 1 << 17];

fn untrusted() -> Untrusted {
    Untrusted {
        limits: Limits {
            max_steps: Some(200_000),
            max_memory: Some(MAX_MEMORY),
            ..Untrusted::default().limits
        },
        max_time: Duration::from_secs(2),
        ..Untrusted::default()
    }
}

/// Opens and runs an untrusted file, and returns the bytes that were held at one time.
fn held(name: &str, bytes: Vec<u8>) -> usize {
    held::at_most(|| run(name, bytes))
}

fn run(name: &str, bytes: Vec<u8>) {
    let queue = Arc::new(MultiThreadedWorkQueue::new(2, 2).expect("threads can be started"));
    // What is printed goes nowhere: collecting it would count.
    let output = Output::new(std::io::sink(), std::io::sink());
    let runtime = Runtime::builder()
        .queue(queue)
        .output(output)
        .untrusted(untrusted())
        .build();
    let Ok(input) = Input::from_bytes(name, bytes) else {
        return;
    };
    let Ok(program) = runtime.load(&input) else {
        return;
    };
    // All at once: their memory is counted together.
    let functions = program.functions().take(64);
    let functions = functions.filter(|function| function.argument_types().len() == 0);
    let context = runtime.context();
    let calls: Vec<Call> = functions
        .map(|function| function.spawn(&context, ()))
        .collect();
    for call in calls {
        let _ = call.wait_each();
    }
    runtime.quiesce().expect("this thread is no worker");
}

fn check(name: &str, bytes: Vec<u8>, failed: &mut Vec<String>) {
    check_within(BASE, name, bytes, failed);
}

fn check_within(base: usize, name: &str, bytes: Vec<u8>, failed: &mut Vec<String>) {
    let (len, begin) = (bytes.len(), Instant::now());
    let held = held(name, bytes);
    let rest = held.saturating_sub(PER_LIMIT * MAX_MEMORY);
    println!(
        "{held:10} held by {len:8} bytes in {:?}: {name}, {:.1} a byte",
        begin.elapsed(),
        held as f64 / len as f64
    );
    if rest > base + PER_BYTE * len {
        failed.push(format!("{name}: {held} bytes held by {len}"));
    }
}

/// Programs that hold as much as they can: calls, values to come, tensors, shapes, strings.
const GREEDY: &[(&str, &str)] = &[
    (
        "calls",
        "func.func @main() -> i32 {
          %a = tfrt.call @main() : () -> i32
          %b = tfrt.call @main() : () -> i32
          %c = tfrt.add.i32 %a, %b
          tfrt.return %c : i32
        }",
    ),
    (
        "blocks of a loop",
        "func.func @main() -> !tfrt.chain {
          %from = tfrt.constant.i32 0
          %to = tfrt.constant.i32 2000000000
          %size = tfrt.constant.i32 1
          %x = tfrt.constant.i32 2
          %done = tfrt.parallel_for.i32 %from to %to fixed %size, %x : i32 {
            %c = tfrt.new.chain
            tfrt.return %c : !tfrt.chain
          }
          tfrt.return %done : !tfrt.chain
        }",
    ),
    (
        "tensors that are kept",
        "func.func @main() -> !t.tensor {
          %a = tfrt_dht.create_uninitialized_tensor.f32.2 [100 : i64, 100 : i64]
          %b = tfrt.call @main() : () -> !t.tensor
          tfrt.return %a : !t.tensor
        }",
    ),
    (
        "shapes that are kept",
        "func.func @main() -> !ts.shape {
          %a = ts.build_shape [1 : i64, 2 : i64, 3 : i64, 4 : i64, 5 : i64, 6 : i64, 7 : i64, 100000 : i64]
          %b = tfrt.call @main() : () -> !ts.shape
          tfrt.return %a : !ts.shape
        }",
    ),
    (
        "one tensor",
        "func.func @main() -> !t.tensor {
          %a = tfrt_dht.create_uninitialized_tensor.i64.1 [4000000000000 : i64]
          tfrt.return %a : !t.tensor
        }",
    ),
];

/// A batch that says to be large, and has nothing in it: a list of its lengths would be of 512 GB.
const HOLLOW: &str = "
    func.func @main() -> !t.tensor {
      %none = \"cpu.onnx.NoValue\"() : () -> !t.none
      %shape = \"cpu.onnx.Constant\"() {value = dense<[68719476736, 1, 0]> : tensor<3xi64>} : () -> !t.tensor
      %x = \"cpu.graph.fill\"(%shape)
          {attributes = [\"value\", dense<1> : tensor<1xi8>]} : (!t.tensor) -> !t.tensor
      %y = \"cpu.onnx.Scan\"(%none, %x) {attributes = [\"captured\", 0 : i64, \"num_scan_inputs\", 1 : i64],
          callee = @body, opset = 8 : i64} : (!t.none, !t.tensor) -> !t.tensor
      tfrt.return %y : !t.tensor
    }
    func.func @body(%x: !t.tensor) -> !t.tensor {
      tfrt.return %x : !t.tensor
    }";

/// Tensors that operations are given, by name: three million bytes `x`, as truths `b`, a million half floats `h`, three
/// hundred thousand numbers `i`, zeros `k` and strings `s`, and one long string `l`. The others are the same in other
/// shapes, or small.
const OPERANDS: &[(&str, &str, &str)] = &[
    ("n", "Constant()", "value = dense<3000000> : tensor<1xi64>"),
    ("m", "Constant()", "value = dense<1000000> : tensor<1xi64>"),
    ("few", "Constant()", "value = dense<300000> : tensor<1xi64>"),
    (
        "channels",
        "Constant()",
        "value = dense<[1, 1000000, 1, 1]> : tensor<4xi64>",
    ),
    (
        "rows",
        "Constant()",
        "value = dense<[300000, 1]> : tensor<2xi64>",
    ),
    (
        "column",
        "Constant()",
        "value = dense<[1, 300000]> : tensor<2xi64>",
    ),
    (
        "batch",
        "Constant()",
        "value = dense<[1, 1000000, 1]> : tensor<3xi64>",
    ),
    (
        "odd",
        "Constant()",
        "value = dense<[1, 300001, 1]> : tensor<3xi64>",
    ),
    (
        "grid",
        "Constant()",
        "value = dense<[1, 1, 1000, 1000]> : tensor<4xi64>",
    ),
    (
        "pairs",
        "Constant()",
        "value = dense<[7000000, 2]> : tensor<2xi64>",
    ),
    (
        "two",
        "Constant()",
        "value = dense<[1.0, 2.0]> : tensor<2xf32>",
    ),
    ("one", "Constant()", "value = dense<1.0> : tensor<1xf32>"),
    ("w", "Constant()", "value = dense<1.0> : tensor<1x1x1xf16>"),
    ("l", "Constant()", "shape = [1 : i64], value = [\"LONG\"]"),
    ("none", "NoValue()", ""),
    (
        "x",
        "ConstantOfShape(n)",
        "attributes = [\"value\", dense<1> : tensor<1xi8>], opset = 20 : i64",
    ),
    (
        "x2",
        "ConstantOfShape(pairs)",
        "attributes = [\"value\", dense<1> : tensor<1xi8>], opset = 20 : i64",
    ),
    (
        "b2",
        "ConstantOfShape(pairs)",
        "attributes = [\"value\", dense<true> : tensor<1xi1>], opset = 20 : i64",
    ),
    (
        "x4",
        "ConstantOfShape(grid)",
        "attributes = [\"value\", dense<1> : tensor<1xi8>], opset = 20 : i64",
    ),
    (
        "b",
        "Cast(x)",
        "attributes = [\"to\", 9 : i64], opset = 20 : i64",
    ),
    (
        "h",
        "ConstantOfShape(m)",
        "attributes = [\"value\", dense<1.0> : tensor<1xf16>], opset = 20 : i64",
    ),
    (
        "h4",
        "ConstantOfShape(channels)",
        "attributes = [\"value\", dense<1.0> : tensor<1xf16>], opset = 20 : i64",
    ),
    (
        "h3",
        "ConstantOfShape(batch)",
        "attributes = [\"value\", dense<1.0> : tensor<1xf16>], opset = 20 : i64",
    ),
    (
        "h3odd",
        "ConstantOfShape(odd)",
        "attributes = [\"value\", dense<1.0> : tensor<1xf16>], opset = 20 : i64",
    ),
    (
        "i",
        "ConstantOfShape(few)",
        "attributes = [\"value\", dense<1> : tensor<1xi64>], opset = 20 : i64",
    ),
    (
        "k",
        "ConstantOfShape(few)",
        "attributes = [\"value\", dense<0> : tensor<1xi64>], opset = 20 : i64",
    ),
    (
        "s",
        "Cast(i)",
        "attributes = [\"to\", 8 : i64], opset = 20 : i64",
    ),
    ("s2", "Reshape(s rows)", "attributes = [], opset = 20 : i64"),
    (
        "t2",
        "Reshape(s column)",
        "attributes = [], opset = 20 : i64",
    ),
];

/// Operations that make much of little: lists beside operands and results, and strings. Their operands, and attributes.
const OPERATIONS: &[(&str, &str)] = &[
    ("SplitToSequence(x)", ""),
    ("SequenceConstruct(x x x x)", ""),
    ("Unique(x)", ""),
    ("Unique(x4)", "\"axis\", 3 : i64"),
    ("NonZero(x)", ""),
    ("NonZero(x4)", ""),
    ("Gather(x i)", ""),
    ("Compress(x b)", ""),
    ("Tile(x n)", ""),
    ("TopK(h3 n)", ""),
    ("Resize(h none one)", ""),
    ("Resize(x none none m)", "\"mode\", \"linear\""),
    (
        "Resize(h none none n)",
        "\"mode\", \"cubic\", \"antialias\", 1 : i64",
    ),
    ("Upsample(h one)", ""),
    ("BatchNormalization(h4 h h h h)", ""),
    ("MeanVarianceNormalization(h4)", ""),
    ("QuantizeLinear(h h x)", "\"axis\", 0 : i64"),
    ("LayerNormalization(h h h)", ""),
    ("RNN(h3 w w)", "\"hidden_size\", 1 : i64"),
    ("DFT(h3odd)", ""),
    ("Multinomial(t2)", ""),
    (
        "ml.LabelEncoder(x)",
        "\"keys_int64s\", [1 : i64], \"values_int64s\", [2 : i64]",
    ),
    (
        "ml.LabelEncoder(s)",
        "\"keys_strings\", [\"1\"], \"values_int64s\", [2 : i64]",
    ),
    ("ml.OneHotEncoder(x)", "\"cats_int64s\", [1 : i64]"),
    ("ml.ArrayFeatureExtractor(x i)", ""),
    ("Cast(x)", "\"to\", 8 : i64"),
    ("Cast(b2)", "\"to\", 8 : i64"),
    ("Pow(x2 two)", ""),
    ("Cast(s)", "\"to\", 7 : i64"),
    ("Equal(s2 t2)", ""),
    ("StringConcat(s l)", ""),
    ("StringConcat(s s)", ""),
    ("StringConcat(s2 t2)", ""),
    ("StringSplit(l)", ""),
    ("StringSplit(l)", "\"delimiter\", \" \""),
    (
        "microsoft.Tokenizer(l)",
        "\"mark\", 1 : i64, \"mincharnum\", 1 : i64, \"pad_value\", \"\", \"tokenexp\", \".\"",
    ),
    (
        "microsoft.Tokenizer(l)",
        "\"mark\", 1 : i64, \"mincharnum\", 1 : i64, \"pad_value\", \"\", \"separators\", [\"a\", \"b*\"]",
    ),
    ("StringNormalizer(s)", "\"case_change_action\", \"UPPER\""),
    ("Gather(l k)", ""),
    ("Tile(l few)", ""),
    ("Expand(l few)", ""),
    ("Where(b l l)", ""),
    ("Unique(s)", ""),
];

/// Returns the line of a program that runs an operation: `Gather(x i)` and attributes.
fn line(name: &str, call: &str, attributes: &str) -> String {
    let of = |name: &str| match name {
        "none" => "!t.none",
        _ => "!t.tensor",
    };
    let result = match call.starts_with("S") && call.contains("Sequence") {
        true => "!t.sequence",
        false => of(name),
    };
    let operands: Vec<String> = operands_of(call).map(|name| format!("%{name}")).collect();
    let types: Vec<&str> = operands_of(call).map(of).collect();
    let (operation, _) = call.split_once('(').expect("a call has operands");
    let (operands, types) = (operands.join(", "), types.join(", "));
    let (kernel, attributes) = kernel(operation, attributes);
    format!("  %{name} = \"{kernel}\"({operands}) {{{attributes}}} : ({types}) -> {result}\n")
}

/// Returns the kernel that runs an operation of ONNX in its newest form, and its attributes there.
fn kernel(operation: &str, attributes: &str) -> (String, String) {
    let own = names::onnx::name(operation).filter(|own| own.row != "constant");
    let Some(own) = own else {
        return (format!("cpu.onnx.{operation}"), attributes.to_owned());
    };
    let stated = own.attrs.iter().filter_map(|attr| match attr {
        NameAttr::Text(row, text) => Some(format!("\"{row}\", \"{text}\", ")),
        NameAttr::Int(row, value) => Some(format!("\"{row}\", {value} : i64, ")),
        _ => None,
    });
    let stated = format!("[{}", stated.collect::<String>());
    let attributes = attributes.replace(", opset = 20 : i64", "");
    let attributes = attributes.replacen('[', &stated, 1).replace(", ]", "]");
    (format!("cpu.graph.{}", own.row), attributes)
}

fn operands_of(call: &str) -> impl Iterator<Item = &str> {
    let (_, operands) = call.split_once('(').expect("a call has operands");
    operands.trim_end_matches(')').split_whitespace()
}

/// Returns the program of an operation: the operation, and others that make its operands.
fn of_operation(call: &str, attributes: &str) -> String {
    let attributes = format!("attributes = [{attributes}], opset = 20 : i64");
    let mut lines = vec![line("y", call, &attributes)];
    let mut needed: Vec<&str> = operands_of(call).collect();
    for (name, call, attributes) in OPERANDS.iter().rev() {
        if needed.contains(name) {
            let attributes = attributes.replace("LONG", &"a ".repeat(1_000));
            lines.push(line(name, call, &attributes));
            needed.extend(operands_of(call));
        }
    }
    lines.push("func.func @main() {\n".to_owned());
    lines.reverse();
    lines.push("  tfrt.return\n}\n".to_owned());
    lines.concat()
}

/// Returns a string that doubles, so that a few lines ask for any memory.
fn doubling() -> String {
    let mut text = "func.func @main() -> !t.tensor {\n  %0 = \"cpu.onnx.Constant\"() \
                    {shape = [1 : i64], value = [\"aaaaaaaa\"]} : () -> !t.tensor\n"
        .to_owned();
    for number in 1..30 {
        let before = number - 1;
        text += &format!(
            "  %{number} = \"cpu.onnx.StringConcat\"(%{before}, %{before}) {{attributes = [], opset = 20 : i64}} : \
             (!t.tensor, !t.tensor) -> !t.tensor\n"
        );
    }
    text + "  tfrt.return %29 : !t.tensor\n}\n"
}

#[test]
fn strangers_hold_no_more_than_is_documented() {
    in_own_process(
        "untrusted::strangers_hold_no_more_than_is_documented",
        try_all_strangers,
    );
}

fn try_all_strangers() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut failed = Vec::new();
    for hostile in FILES.iter().chain(TEXTS) {
        // What is repeated has other lengths in each kind.
        let unit = 1_000;
        let per_unit = (hostile.make)(unit).len();
        for len in LENGTHS {
            let bytes = (hostile.make)(len * unit / per_unit);
            check(hostile.name, bytes, &mut failed);
        }
    }
    for (name, text) in GREEDY {
        check(name, text.as_bytes().to_vec(), &mut failed);
    }
    check("hollow batch", HOLLOW.as_bytes().to_vec(), &mut failed);
    for (call, attributes) in OPERATIONS {
        let bytes = of_operation(call, attributes).into_bytes();
        check_within(BASE_OF_OPERATION, call, bytes, &mut failed);
    }
    check("string that doubles", doubling().into_bytes(), &mut failed);
    // Some that there is memory for, some that there is not, and some that no picture may be.
    for extent in [400, 8_000, 30_000] {
        for (name, picture) in pictures::promises(extent) {
            let program = pictures::program(&picture);
            check(
                &format!("{name}, {extent} pixels"),
                program.into_bytes(),
                &mut failed,
            );
        }
    }
    for (name, model) in seeds::models() {
        check(&format!("model {name}"), model, &mut failed);
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
