//! What strangers' programs hold: no more than `docs/limits.md` says, whatever they are.
//!
//! Memory is counted by the allocator of this program, for the whole process: this file has one test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tfrt::input::Input;
use tfrt::{Call, Limits, MultiThreadedWorkQueue, Output, Runtime, Untrusted};
use tfrt_fuzz::counting::Counting;
use tfrt_fuzz::hostile::{FILES, TEXTS, pictures};
use tfrt_fuzz::seeds;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(taken: usize, given_back: usize) {
    let live = LIVE.fetch_add(taken, Ordering::Relaxed) + taken;
    PEAK.fetch_max(live, Ordering::Relaxed);
    LIVE.fetch_sub(given_back, Ordering::Relaxed);
}

#[global_allocator]
static COUNTING: Counting = Counting(count);

/// Bytes that requests may take here: programs that want more are found soon.
const MAX_MEMORY: usize = 16 << 20;

/// What `docs/limits.md` promises: bytes in any case, for each byte of the file, and for each byte of the limit.
const BASE: usize = 64 << 20;
const PER_BYTE: usize = 64;
const PER_LIMIT: usize = 4;

/// Lengths that hostile inputs have, about.
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

/// Opens and runs what a stranger gives, and returns the bytes that were held at one time.
fn held(name: &str, bytes: Vec<u8>) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    run(name, bytes);
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
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
    let (len, begin) = (bytes.len(), Instant::now());
    let held = held(name, bytes);
    let rest = held.saturating_sub(PER_LIMIT * MAX_MEMORY);
    println!(
        "{held:10} held by {len:8} bytes in {:?}: {name}, {:.1} a byte",
        begin.elapsed(),
        held as f64 / len as f64
    );
    if rest > BASE + PER_BYTE * len {
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

/// Operations of models that make much of little: what they hold beside operands and results is counted by nobody.
/// There are three million bytes `%x`, truths `%b`, and three hundred thousand numbers `%i`, zeros `%k` and strings `%s`;
/// `%l` is one long string.
const OF_MANY_ELEMENTS: &[(&str, &str, &str)] = &[
    (
        "!onnx.sequence<tensor<?xi8>>",
        "SplitToSequence",
        "(%x) : (tensor<?xi8>)",
    ),
    ("tensor<?xi8>", "Unique", "(%x) : (tensor<?xi8>)"),
    ("tensor<1x?xi64>", "NonZero", "(%x) : (tensor<?xi8>)"),
    (
        "tensor<?xi8>",
        "Gather",
        "(%x, %i) : (tensor<?xi8>, tensor<?xi64>)",
    ),
    (
        "tensor<?xi8>",
        "Compress",
        "(%x, %b) : (tensor<?xi8>, tensor<?xi1>)",
    ),
    (
        "tensor<?xi8>",
        "Tile",
        "(%x, %n) : (tensor<?xi8>, tensor<1xi64>)",
    ),
    (STRINGS, "Cast", "(%x) {to = 8 : i64} : (tensor<?xi8>)"),
    (
        STRINGS,
        "StringConcat",
        "(%s, %l) : (tensor<?x!onnx.string>, tensor<1x!onnx.string>)",
    ),
    (
        STRINGS,
        "StringConcat",
        "(%s, %s) : (tensor<?x!onnx.string>, tensor<?x!onnx.string>)",
    ),
    (
        STRINGS,
        "Gather",
        "(%l, %k) : (tensor<1x!onnx.string>, tensor<?xi64>)",
    ),
    (
        STRINGS,
        "Tile",
        "(%l, %m) : (tensor<1x!onnx.string>, tensor<1xi64>)",
    ),
    (
        STRINGS,
        "Expand",
        "(%l, %m) : (tensor<1x!onnx.string>, tensor<1xi64>)",
    ),
    (
        STRINGS,
        "Where",
        "(%b, %l, %l) : (tensor<?xi1>, tensor<1x!onnx.string>, tensor<1x!onnx.string>)",
    ),
    (
        STRINGS,
        "StringNormalizer",
        "(%s) {case_change_action = \"UPPER\"} : (tensor<?x!onnx.string>)",
    ),
    (STRINGS, "Unique", "(%s) : (tensor<?x!onnx.string>)"),
];

const STRINGS: &str = "tensor<?x!onnx.string>";

fn of_many_elements(ty: &str, operation: &str, rest: &str) -> String {
    let long = "a ".repeat(1_000);
    format!(
        r#"module attributes {{onnx.opset = 20 : i64}} {{
          func.func @main() -> {ty} attributes {{onnx.inputs = [], onnx.outputs = ["y"]}} {{
            %n = "onnx.Constant"() {{value = dense<3000000> : tensor<1xi64>}} : () -> tensor<1xi64>
            %m = "onnx.Constant"() {{value = dense<300000> : tensor<1xi64>}} : () -> tensor<1xi64>
            %l = "onnx.Constant"() {{shape = [1 : i64], value = ["{long}"]}} : () -> tensor<1x!onnx.string>
            %x = "onnx.ConstantOfShape"(%n) {{value = dense<1> : tensor<1xi8>}} : (tensor<1xi64>) -> tensor<?xi8>
            %b = "onnx.Cast"(%x) {{to = 9 : i64}} : (tensor<?xi8>) -> tensor<?xi1>
            %i = "onnx.ConstantOfShape"(%m) {{value = dense<1> : tensor<1xi64>}} : (tensor<1xi64>) -> tensor<?xi64>
            %k = "onnx.ConstantOfShape"(%m) {{value = dense<0> : tensor<1xi64>}} : (tensor<1xi64>) -> tensor<?xi64>
            %s = "onnx.Cast"(%i) {{to = 8 : i64}} : (tensor<?xi64>) -> tensor<?x!onnx.string>
            %y = "onnx.{operation}"{rest} -> {ty}
            func.return %y : {ty}
          }}
        }}"#
    )
}

/// A string that doubles, so that a few lines ask for any memory.
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

/// One test: what it counts is the whole process's.
#[test]
fn strangers_hold_no_more_than_is_documented() {
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
    for (ty, operation, rest) in OF_MANY_ELEMENTS {
        let text = of_many_elements(ty, operation, rest);
        check(operation, text.into_bytes(), &mut failed);
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
    for (index, model) in seeds::inputs("import").into_iter().enumerate() {
        check(&format!("model {index}"), model, &mut failed);
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
