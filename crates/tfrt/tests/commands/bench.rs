//! `tfrt bench`: what it measures, and what it refuses to.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value as Json;

const PROGRAM: &str = "\
func.func @main() -> i32 {
  %start = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %two = \"tfrt_test.async_add.i32\"(%one, %one) : (i32, i32) -> i32
  %done = tfrt.print.i32 %two, %start
  tfrt.return %two : i32
}
func.func @twice(%x: i32) -> i32 attributes {tfrt.sync} {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
func.func @half(%x: i32, %zero: i32) -> i32 {
  %y, %rest = tfrt.div.i32 %x, %zero
  tfrt.return %y : i32
}
func.func @silent() {
  %start = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %done = tfrt.print.i32 %one, %start
  tfrt.return
}
";

/// Runs `tfrt bench` with a few calls.
fn bench(test: &str, text: &str, options: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(format!("{test}.mlir"));
    fs::write(&program, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.args(["bench", "--warm-up=0ms", "--runs=20"]);
    command.args(options).arg(program).output().unwrap()
}

fn document(test: &str, options: &[&str]) -> Json {
    let output = bench(test, PROGRAM, &[options, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn calls_and_kernels_are_counted() {
    for queue in ["--queue=single", "--queue=multi:2"] {
        let main = document("main", &[queue]);
        assert_eq!(main["schema"], "tfrt.bench/1");
        assert_eq!(main["function"], "main");
        assert_eq!(main["calls"], 20);
        assert_eq!(main["kernels_per_call"], 4);
        assert_eq!(main["discarded_output_bytes"], 20 * "int32 = 2\n".len());
        let time = |name: &str| main[name].as_f64().unwrap();
        let times = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"].map(time);
        assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
        assert!((times[0]..=times[4]).contains(&time("mean_ns")));
        assert!(time("processor_ns_per_call") > 0.0);
    }
    let twice = document("twice", &["--function=twice", "--arg=3"]);
    assert_eq!(twice["kernels_per_call"], 1);
    let silent = document("silent", &["--function=silent", "--queue=multi:2"]);
    assert_eq!(silent["discarded_output_bytes"], 20 * "int32 = 1\n".len());
}

#[test]
fn stats_tell_which_kernels_took_the_time() {
    assert!(document("no_stats", &[]).get("stats").is_none());
    let document = document("stats", &["--queue=single", "--stats"]);
    let stats = &document["stats"];
    assert_eq!(stats["calls"], 20);
    let runs = |kernel: &Json| kernel["runs"].as_u64().unwrap();
    for rows in ["kernels", "places"] {
        let n_runs: u64 = stats[rows].as_array().unwrap().iter().map(runs).sum();
        assert_eq!(n_runs, 4 * 20, "{rows}");
    }
    let output = bench("stats_text", PROGRAM, &["--queue=single", "--stats"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["recorded in 20 further calls:", "place "] {
        assert!(text.contains(part), "{text}");
    }
}

/// A model with a weight, which is packed once.
const MODEL: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<4x64xf32>) -> tensor<4x32xf32>
      attributes {model.input_names = ["x"], model.output_names = ["y"]} {
    %w = "onnx.Constant"() {value = dense<0.5> : tensor<64x32xf32>} : () -> tensor<64x32xf32>
    %y = "onnx.MatMul"(%x, %w) : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
    func.return %y : tensor<4x32xf32>
  }
}
"#;

#[test]
fn preparation_of_a_model_is_no_part_of_a_call() {
    let output = bench("model", MODEL, &["--queue=single", "--stats", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = document["stats"]["kernels"].as_array().unwrap();
    let names: Vec<&str> = kernels
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(document["kernels_per_call"], 1);
}

#[test]
fn report_is_for_people_too() {
    let output = bench("report", PROGRAM, &["--queue=single"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "'main' of ",
        "20 calls in ",
        "\n  p50 ",
        "(95%, by Student's t over the means of ",
        " calls a second, 4 kernels a call, ",
        "\n  what kernels printed was discarded: 10 bytes a call\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(output.stderr, b"");
}

#[test]
fn time_is_kept() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.mlir");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.args(["bench", "--warm-up=1ms", "--time=20ms", "--json"]);
    let output = command.arg(folder).output().unwrap();
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["measured_ns"].as_u64().unwrap() >= 20_000_000);
    assert!(document["calls"].as_u64().unwrap() > 1);
}

#[test]
fn errors_end_it() {
    let options = ["--function=half", "--arg=1", "--arg=0"];
    let output = bench("errors", PROGRAM, &options);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(":13:15: error: runtime error: Divide by zero\n"),
        "{said}"
    );
    let last = "tfrt: error: 'half' fails, so that there is nothing to measure\n";
    assert!(said.ends_with(last), "{said}");
    let output = bench(
        "errors_json",
        PROGRAM,
        &[&options[..], &["--json"]].concat(),
    );
    assert_eq!(output.status.code(), Some(3));
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["exit_status"], 3);
    let message = document["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("Divide by zero"), "{document}");
}

#[test]
fn want_of_memory_is_a_limit_as_of_a_run() {
    let program = "func.func @main() -> !t.tensor {
      %a = tfrt_dht.create_uninitialized_tensor.f32.2 [3000000 : i64, 3000000 : i64]
      tfrt.return %a : !t.tensor
    }";
    let output = bench("memory", program, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Cannot allocate tensor"), "{said}");
    assert_eq!(output.status.code(), Some(5), "{said}");
}

/// Prints without end.
const ENDLESS: &str = "func.func @main() {
  %t = tfrt.constant.i1 true
  %n = tfrt.constant.i32 1
  %x = tfrt.while %t @body(%n) parallel_iterations(1) : (i32) -> (i32)
  tfrt.return
}
func.func @body(%x: i32) -> (i32, i1) {
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %x, %c0
  %t = tfrt.constant.i1 true
  tfrt.return %x, %t : i32, i1
}
";

#[test]
fn limits_are_those_of_a_run() {
    let with_result = ENDLESS.replacen("main() {", "main() -> i32 {", 1).replacen(
        "  tfrt.return\n",
        "  tfrt.return %x : i32\n",
        1,
    );
    let deadline = "'main' fails with 'Deadline exceeded: the time allowed was 200ms', so that there is nothing to measure";
    let never = "func.func @main() -> i32 {
      %a = \"tfrt_test.never\"() : () -> i32
      tfrt.return %a : i32
    }";
    let cases = [
        (ENDLESS, "--deadline=200ms", 4, deadline),
        (&with_result, "--deadline=200ms", 4, deadline),
        (
            ENDLESS,
            "--max-steps=1000",
            5,
            "help: --max-steps allows 1000 kernels",
        ),
        (
            &with_result,
            "--max-steps=1000",
            5,
            "help: --max-steps allows 1000 kernels",
        ),
        (
            PROGRAM,
            "--max-file=10",
            1,
            "larger than the limit of 10 bytes",
        ),
        (
            never,
            "--untrusted",
            1,
            "note: --untrusted leaves out the kernels of",
        ),
    ];
    for (text, flag, status, expected) in cases {
        let output = bench("limits", text, &[flag]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{flag}: {said}");
        assert!(said.contains(expected), "{flag}: {said}");
    }
    let fine = PROGRAM.replace(
        "\"tfrt_test.async_add.i32\"(%one, %one) : (i32, i32) -> i32",
        "tfrt.add.i32 %one, %one",
    );
    let output = bench("limits-fine", &fine, &["--untrusted", "--function=silent"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn errors_without_a_place_are_the_reason() {
    let example =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/cancellation.mlir");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    let output = command.arg("bench").arg(example).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    let reason =
        "tfrt: error: 'main' fails with 'Cancelled', so that there is nothing to measure\n";
    assert_eq!(said, reason);
}

#[test]
fn choice_of_a_function_is_explained() {
    let two = "func.func @f() {\n  tfrt.return\n}\nfunc.func @g() {\n  tfrt.return\n}\n";
    let one = "func.func @f(%x: i32) -> i32 {\n  tfrt.return %x : i32\n}\n";
    let cases = [
        (
            "two",
            two,
            "2 functions can be called; --function says which",
        ),
        (
            "one",
            one,
            "no function can be called without --arg: the program has f",
        ),
    ];
    for (test, text, message) in cases {
        let output = bench(test, text, &[]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, format!("tfrt: error: {message}\n"));
    }
    let output = bench("missing", one, &["--function=g", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["problems"][0]["code"], "TF0005");
}
