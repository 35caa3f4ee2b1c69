//! The limits of `docs/limits.md`: the tables say what the code says, and `tfrt run --untrusted` keeps them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A row of a table that names a constant.
struct Row {
    value: String,
    file: String,
    constant: String,
    error: Option<String>,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/limits.md")).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let is_place = |cell: &&&str| cell.starts_with("`crates/");
        let Some(place) = cells.iter().find(is_place) else {
            continue;
        };
        let mut quoted = place.split('`').skip(1).step_by(2);
        let error = cells.last().unwrap().trim_matches('`');
        rows.push(Row {
            value: cells[1].to_owned(),
            file: quoted.next().unwrap().to_owned(),
            constant: quoted.next().unwrap().to_owned(),
            error: (!error.is_empty()).then(|| error.to_owned()),
        });
    }
    rows
}

/// Returns the number that `64 MiB`, `10 s` or `1,000` stands for.
fn documented(value: &str) -> u64 {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let number: u64 = number.replace(',', "").parse().expect(value);
    match unit {
        "" | "s" => number,
        "KiB" => number << 10,
        "MiB" => number << 20,
        "GiB" => number << 30,
        _ => panic!("unknown unit in '{value}'"),
    }
}

/// Returns the number that `64 << 20`, `10_000` or `Duration::from_secs(10)` stands for.
fn defined(expression: &str) -> u64 {
    let number = |text: &str| -> u64 { text.trim().replace('_', "").parse().expect(expression) };
    let seconds = expression.strip_prefix("Duration::from_secs(");
    if let Some(seconds) = seconds.and_then(|rest| rest.strip_suffix(')')) {
        return number(seconds);
    }
    match expression.split_once("<<") {
        Some((number_of, shift)) => number(number_of) << number(shift),
        None => number(expression),
    }
}

fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn documented_limits_are_those_of_the_code() {
    let rows = rows();
    assert!(rows.len() > 25, "the tables are read: {}", rows.len());
    for row in &rows {
        let text = fs::read_to_string(root().join(&row.file)).expect(&row.file);
        let head = format!("const {}: ", row.constant);
        let found = text.lines().find_map(|line| line.split_once(&head));
        let (_, rest) = found.unwrap_or_else(|| panic!("no {} in {}", row.constant, row.file));
        let (_, expression) = rest.split_once(" = ").expect(rest);
        let expression = expression.trim_end_matches(';');
        assert_eq!(
            defined(expression),
            documented(&row.value),
            "{}",
            row.constant
        );
    }
}

#[test]
fn documented_errors_are_those_of_the_code() {
    let mut all = String::new();
    sources(&root().join("crates"), &mut all);
    for error in rows().into_iter().filter_map(|row| row.error) {
        let parts = error
            .split('N')
            .map(str::trim)
            .filter(|part| part.len() > 5);
        for part in parts {
            assert!(all.contains(part), "nobody says '{part}'");
        }
    }
}

/// A file that is there as long as this is.
struct Written(PathBuf);

impl Drop for Written {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// Starts `tfrt run` with flags on a program.
fn start(name: &str, flags: &[&str], program: &[u8]) -> (Child, Written) {
    let path = std::env::temp_dir().join(format!("tfrt-limits-{}-{name}", std::process::id()));
    fs::write(&path, program).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .arg("run")
        .args(flags)
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, Written(path))
}

/// Runs `tfrt run` with flags on a program.
fn run(name: &str, flags: &[&str], program: &[u8]) -> Output {
    let (child, _path) = start(name, flags, program);
    child.wait_with_output().unwrap()
}

/// Runs a stranger's program, and expects a status, and words on either stream.
fn expect(name: &str, flags: &[&str], program: &str, status: i32, words: &str) {
    let flags = [&["--untrusted"], flags].concat();
    let output = run(name, &flags, program.as_bytes());
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert_eq!(output.status.code(), Some(status), "{name}: {told}");
    assert!(told.contains(words), "{name}: {told}");
}

const RECURSION: &str = "func.func @main() -> i32 {
  %a = tfrt.call @main() : () -> i32
  tfrt.return %a : i32
}";

const TWICE: &str = "func.func @main() -> i32 {
  %a = tfrt.call @main() : () -> i32
  %b = tfrt.call @main() : () -> i32
  %c = tfrt.add.i32 %a, %b
  tfrt.return %c : i32
}";

/// A tensor of more bytes than a stranger may have.
const TENSOR: &str = "func.func @main() -> !t.tensor {
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [30000 : i64, 30000 : i64]
  tfrt.return %a : !t.tensor
}";

#[test]
fn programs_of_strangers_end_at_each_limit() {
    expect(
        "fine",
        &[],
        "func.func @main() -> i32 {\n  %a = tfrt.constant.i32 7\n  tfrt.return %a : i32\n}",
        0,
        "7",
    );
    expect(
        "long",
        &["--max-file", "50"],
        RECURSION,
        1,
        "it is larger than the limit of 50 bytes",
    );
    expect(
        "deep",
        &[],
        RECURSION,
        5,
        "call depth exceeds the limit of 10000",
    );
    expect(
        "deeper",
        &["--max-depth", "50"],
        RECURSION,
        5,
        "call depth exceeds the limit of 50",
    );
    expect(
        "steps",
        &["--max-steps", "1000", "--max-depth", "1000000"],
        TWICE,
        5,
        "more than the limit of 1000 steps",
    );
    expect(
        "memory",
        &["--max-memory", "1MiB", "--max-depth", "1000000"],
        RECURSION,
        5,
        "no memory for a call of",
    );
    let words = "Cannot allocate tensor";
    expect("tensor", &[], TENSOR, 5, words);
    // Of a function without results only what was reported tells that it met a limit.
    expect(
        "without-results",
        &[],
        "func.func @main() {\n  tfrt.call @main() : () -> ()\n  tfrt.return\n}",
        5,
        "call depth exceeds the limit of 10000",
    );
}

#[test]
fn errors_name_the_flag_of_their_limit() {
    let help = "help: --max-depth allows 50 calls within calls";
    expect("depth-flag", &["--max-depth", "50"], RECURSION, 5, help);
    // No kernel reports what stops the whole function.
    let help = "help: --max-steps allows 1000 kernels and calls in one function";
    let flags = ["--max-steps", "1000", "--max-depth", "1000000"];
    expect("steps-flag", &flags, TWICE, 5, help);
    let help = "help: --max-memory allows 1048576 bytes at one time";
    let flags = ["--max-memory", "1M", "--max-depth", "1000000"];
    expect("memory-flag", &flags, RECURSION, 5, help);
    let flags = [
        "--allocator=fixed:100000",
        "--random",
        "--dim=H=1000",
        "--dim=W=1000",
    ];
    let help = "help: --allocator has 100000 bytes at one time";
    let output = run("fixed-flag", &flags, IMAGE.as_bytes());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains(help), "{told}");
    assert_eq!(output.status.code(), Some(5), "{told}");
}

#[test]
fn results_that_come_too_late_are_told_with_the_reason() {
    // The first result is there at once; the chain behind it is never waited for.
    let program = "func.func @main() -> i32 {
      %n = tfrt.constant.i32 2000000000
      %x = tfrt.constant.i32 7
      %y = tfrt.repeat.i32 %n, %x : i32 {
        %z = tfrt.add.i32 %x, %x
        tfrt.return %z : i32
      }
      tfrt.return %x : i32
    }";
    let words = "runtime error: Deadline exceeded: the time allowed was 100ms";
    let flags = ["--deadline=100ms", "--max-steps=1000000000000"];
    expect("late", &flags, program, 4, words);
    let words = "more than the limit of 1000 steps";
    expect("late", &["--max-steps=1000"], program, 5, words);
}

#[test]
fn limit_that_is_met_often_is_told_once_for_each_place() {
    let output = run("often", &["--max-depth", "7"], TWICE.as_bytes());
    assert_eq!(output.status.code(), Some(5));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("error: runtime error").count(), 2, "{told}");
    assert_eq!(told.matches("note: reported 64 times").count(), 2, "{told}");
    let flags = ["--max-depth", "7", "--json"];
    let output = run("often", &flags, TWICE.as_bytes());
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    let diagnostics = document["functions"][0]["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), 2, "{document}");
}

#[test]
fn tensor_without_memory_has_the_type_of_its_elements() {
    let model = "module attributes {onnx.opset = 17 : i64} {
      func.func @main(%x: tensor<?x!E>, %n: tensor<1xi64>) -> tensor<?x!E>
          attributes {model.input_names = [\"x\", \"n\"], model.output_names = [\"y\"],
                      model.input_dims = [[\"N\"], [1 : i64]], model.output_dims = [[\"M\"]]} {
        %t = \"onnx.Tile\"(%x, %n) : (tensor<?x!E>, tensor<1xi64>) -> tensor<?x!E>
        func.return %t : tensor<?x!E>
      }
    }";
    let path = std::env::temp_dir().join(format!("tfrt-times-{}.json", std::process::id()));
    fs::write(&path, "[200000]").unwrap();
    let times = format!("n={}", path.display());
    for (element, words) in [
        ("f32", "Cannot allocate tensor of f32 [20000000]"),
        ("i16", "Cannot allocate tensor of i16 [20000000]"),
        ("!onnx.string", "Cannot allocate tensor of str [20000000]"),
    ] {
        let flags = ["--random", "--dim=N=100", "--input", &times];
        let flags = [&flags[..], &["--max-memory=1M"]].concat();
        expect("elements", &flags, &model.replace("!E", element), 5, words);
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn tensors_of_a_sequence_are_counted_though_they_hold_nothing() {
    let model = "module attributes {onnx.opset = 20 : i64} {
      func.func @main(%s: !onnx.sequence<tensor<?xf32>>) -> tensor<i64> attributes {
          model.input_names = [\"s\"], model.output_names = [\"n\"]} {
        %n = \"onnx.SequenceLength\"(%s) : (!onnx.sequence<tensor<?xf32>>) -> tensor<i64>
        func.return %n : tensor<i64>
      }
    }";
    let path = std::env::temp_dir().join(format!("tfrt-sequence-{}.json", std::process::id()));
    fs::write(&path, format!("[{}[]]", "[],".repeat(10_000))).unwrap();
    let input = format!("--input=s={}", path.display());
    let words = "Cannot allocate sequence of 16";
    let flags = [&input[..], "--max-memory=1M"];
    expect("sequence", &flags, model, 5, words);
    fs::remove_file(path).unwrap();
}

#[test]
fn what_no_memory_can_hold_exceeds_a_limit_as_what_this_machine_has_not() {
    let model = |of: &str, extents: &str| {
        format!(
            "module attributes {{onnx.opset = 17 : i64}} {{\n\
             func.func @main(%x: tensor<3xf32>) -> tensor<*xf32> attributes {{\n\
             model.input_names = [\"x\"], model.output_names = [\"y\"],\n\
             model.input_dims = [[3 : i64]], model.output_dims = [[]]}} {{\n\
             %s = \"onnx.Constant\"() {{value = dense<[{extents}, 3]> : tensor<3xi64>}} : () -> tensor<3xi64>\n\
             %c = \"onnx.Constant\"() {{value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}} : () -> tensor<3xf32>\n\
             %y = \"onnx.Expand\"({of}, %s) : (tensor<3xf32>, tensor<3xi64>) -> tensor<*xf32>\n\
             func.return %y : tensor<*xf32>\n}}\n}}"
        )
    };
    // Of 2^40 elements, of as many bytes as can't be addressed, and of as many elements.
    for (a, b) in [
        (1_u64 << 20, 1_u64 << 20),
        (1 << 32, 1 << 30),
        (1 << 40, 1 << 40),
    ] {
        let tensor = TENSOR.replace("30000 : i64, 30000 : i64", &format!("{a} : i64, {b} : i64"));
        let extents = format!("{a}, {b}");
        // As a result, as what a model makes, and as a constant of it.
        for program in [tensor, model("%x", &extents), model("%c", &extents)] {
            for flags in [&["--random"][..], &["--random", "--untrusted"]] {
                let is_model = program.starts_with("module");
                let flags = if is_model { flags } else { &flags[1..] };
                let output = run("huge", flags, program.as_bytes());
                let told = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(5), "{flags:?} {program}: {told}");
            }
        }
    }
}

#[test]
fn document_is_that_of_a_model_where_the_model_is_refused_or_ended() {
    let document = |flags: &[&str], status| {
        let flags = [&["--untrusted", "--json", "--random"], flags].concat();
        let output = run("refused", &flags, IMAGE.as_bytes());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{told}");
        let document: Json = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(document["schema"], "tfrt.run-model/1", "{document}");
        assert_eq!(document["exit_status"], status, "{document}");
        document
    };
    let large = ["--dim=H=7000", "--dim=W=7000"];
    let flags = [&large[..], &["--max-memory=1M"]].concat();
    let message = document(&flags, 5)["problems"][0]["message"].to_string();
    assert!(message.contains("can't be generated"), "{message}");
    // That many elements take longer than the deadline, and longer than twice as long.
    document(&[&large[..], &["--deadline=5ms"]].concat(), 4);
}

#[test]
fn time_ends_programs_of_strangers() {
    let forever = "func.func @main() -> i32 {
      %n = tfrt.constant.i32 2000000000
      %x = tfrt.constant.i32 0
      %y = tfrt.repeat.i32 %n, %x : i32 {
        %z = tfrt.add.i32 %x, %x
        tfrt.return %z : i32
      }
      tfrt.return %y : i32
    }";
    let flags = ["--deadline", "200ms", "--max-steps", "1000000000000"];
    expect("forever", &flags, forever, 4, "Deadline exceeded");
    // A deadline that leaves no time is one, too, and no fault of the kernels.
    let flags = ["--deadline", "1ms", "--max-steps", "1000000000000"];
    expect("at-once", &flags, forever, 4, "Deadline exceeded");
}

#[test]
fn kernel_that_does_not_stop_at_the_deadline_is_ended_with_the_process() {
    // A pipe takes some pages, and then whoever prints waits, since nobody reads.
    let program = "func.func @main() -> !tfrt.chain {
      %n = tfrt.constant.i32 1000000
      %x = tfrt.constant.i32 123456789
      %start = tfrt.new.chain
      %done:2 = tfrt.repeat.i32 %n, %start, %x : !tfrt.chain, i32 {
        %printed = tfrt.print.i32 %x, %start
        tfrt.return %printed, %x : !tfrt.chain, i32
      }
      tfrt.return %done#0 : !tfrt.chain
    }";
    let flags = ["--untrusted", "--deadline", "500ms"];
    let (mut child, _path) = start("printer", &flags, program.as_bytes());
    let status = child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(status.code(), Some(4), "{told}");
    assert!(
        told.contains("work that did not stop at the deadline of 500ms"),
        "{told}"
    );
}

#[test]
fn programs_of_strangers_have_no_harmful_kernels() {
    let one = |kernel: &str| {
        format!(
            "func.func @main() -> i32 {{\n  %a = \"{kernel}\"() : () -> i32\n  tfrt.return %a : i32\n}}"
        )
    };
    for kernel in [
        "tfrt_test.never",
        "tfrt_test.panic",
        "tfrt_test.spin",
        "btf.read_dense_tensor.i32.2",
    ] {
        expect(
            "kernel",
            &[],
            &one(kernel),
            1,
            "note: --untrusted leaves out the kernels of btf, cuda, tfrt_cuda, tfrt_cuda_test, tfrt_dist, tfrt_gpu, tfrt_test",
        );
    }
}

/// Returns a program whose error is said to come from a file.
fn failing_at(file: &Path) -> String {
    RECURSION.replace(
        "() -> i32\n  tfrt.return",
        &format!(
            "() -> i32 loc({:?}:1:1)\n  tfrt.return",
            file.display().to_string()
        ),
    )
}

#[test]
fn files_that_strangers_name_are_not_shown() {
    let secret = std::env::temp_dir().join(format!("tfrt-secret-{}", std::process::id()));
    fs::write(&secret, "the words\n").unwrap();
    let program = failing_at(&secret);
    let is_shown = |flags: &[&str]| {
        let output = run("secret", flags, program.as_bytes());
        assert_eq!(output.status.code(), Some(5));
        String::from_utf8_lossy(&output.stderr).contains("the words")
    };
    assert!(is_shown(&["--max-depth", "9"]));
    assert!(!is_shown(&["--untrusted"]));
    fs::remove_file(secret).unwrap();
}

#[test]
fn files_of_strangers_are_never_mapped() {
    let output = run("mapped", &["--untrusted", "--mmap"], b"");
    assert_eq!(output.status.code(), Some(2));
}

/// A model that takes an image of any extents.
const IMAGE: &str = "module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<1x1x?x?xui8>) -> tensor<1x1x?x?xui8>
      attributes {model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[1 : i64, 1 : i64, \"H\", \"W\"]],
                  model.output_dims = [[1 : i64, 1 : i64, \"H\", \"W\"]]} {
    %0 = \"onnx.Identity\"(%x) : (tensor<1x1x?x?xui8>) -> tensor<1x1x?x?xui8>
    func.return %0 : tensor<1x1x?x?xui8>
  }
}";

#[test]
fn images_of_strangers_have_the_memory_of_the_host() {
    // A bit for each pixel in the file, a byte when it is read.
    let extent = 1_600;
    let path = std::env::temp_dir().join(format!("tfrt-image-{}.png", std::process::id()));
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, extent, extent);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().unwrap();
    let n_bytes = extent as usize * extent as usize / 8;
    writer.write_image_data(&vec![0; n_bytes]).unwrap();
    writer.finish().unwrap();
    assert!(file.len() < 20_000);
    fs::write(&path, file).unwrap();
    let input = format!("x={}", path.display());
    let with = |more: &[&str], status, words| {
        let flags = [&["--input", &input, "--stats", "--deadline", "60s"], more].concat();
        expect("image", &flags, IMAGE, status, words);
    };
    let words = "there is no memory for an image of 2560000 bytes";
    with(&["--max-memory", "2M"], 5, words);
    with(
        &["--max-memory", "2M"],
        5,
        "--max-memory allows 2097152 bytes",
    );
    with(&["--max-memory", "16M"], 0, "");
    fs::remove_file(path).unwrap();
}

/// A model with a matrix that is packed when it is opened.
const PRODUCT: &str = "module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<1x64xf32>) -> tensor<1x64xf32>
      attributes {model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[1 : i64, 64 : i64]],
                  model.output_dims = [[1 : i64, 64 : i64]]} {
    %w = \"onnx.Constant\"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
    %y = \"onnx.MatMul\"(%x, %w) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
    func.return %y : tensor<1x64xf32>
  }
}";

#[test]
fn documents_hold_no_more_than_is_printed_within_the_limit() {
    let text = "a".repeat(10_000);
    let program = format!(
        "func.func @main() -> !tfrt.chain {{
           %strings = corert.const_string_tensor {{shape = [1], value = [\"{text}\"]}}
           %n = tfrt.constant.i32 100
           %start = tfrt.new.chain
           %done:2 = tfrt.repeat.i32 %n, %start, %strings : !tfrt.chain, !corert.tensorhandle {{
             %p = \"corert.print_tensorhandle\"(%strings, %start) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
             tfrt.return %p, %strings : !tfrt.chain, !corert.tensorhandle
           }}
           tfrt.return %done#0 : !tfrt.chain
         }}"
    );
    let with = |flags: &[&str], status, words| expect("prints", flags, &program, status, words);
    with(&["--max-memory", "1M"], 0, "");
    with(&["--max-memory", "64M", "--json"], 0, "");
    let words = "with --json, a program may print 131072 bytes";
    with(&["--max-memory", "1M", "--json"], 5, words);
}

/// A model that takes a number of strings.
const STRINGS: &str = "module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x!onnx.string>) -> tensor<?x!onnx.string>
      attributes {model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[\"N\"]],
                  model.output_dims = [[\"N\"]]} {
    %0 = \"onnx.Identity\"(%x) : (tensor<?x!onnx.string>) -> tensor<?x!onnx.string>
    func.return %0 : tensor<?x!onnx.string>
  }
}";

#[test]
fn limits_hold_before_the_call_of_a_model_too() {
    let with = |text, more: &[&str], status, words| {
        let flags = [&["--random"], more].concat();
        expect("before", &flags, text, status, words);
    };
    let large = ["--dim", "H=2000", "--dim", "W=2000"];
    let words = "input 'x' can't be generated";
    with(
        IMAGE,
        &[&large[..], &["--max-memory", "2M"]].concat(),
        5,
        words,
    );
    with(
        IMAGE,
        &[&large[..], &["--max-memory", "64M"]].concat(),
        0,
        "",
    );
    let words = "there is no memory for a tensor of str";
    with(STRINGS, &["--dim", "N=1000"], 0, "");
    with(
        STRINGS,
        &["--dim", "N=100000", "--max-memory", "2M"],
        5,
        words,
    );
    // More than any tensor has, limited or not.
    with(STRINGS, &["--dim", "N=100000000"], 2, words);
    // As JSON an element takes more.
    let small = ["--dim", "H=300", "--dim", "W=300", "--max-memory", "2M"];
    with(IMAGE, &small, 0, "");
    let words = "there is no memory for output 'y' as JSON";
    with(IMAGE, &[&small[..], &["--json"]].concat(), 5, words);
    let words = "the constants of the model can't be made";
    with(PRODUCT, &["--max-memory", "4K"], 5, words);
    with(
        PRODUCT,
        &["--max-memory", "4K"],
        5,
        "--max-memory allows 4096 bytes",
    );
    with(PRODUCT, &["--max-steps", "1"], 5, words);
    with(
        PRODUCT,
        &["--max-steps", "100", "--max-memory", "1M"],
        0,
        "",
    );
}
