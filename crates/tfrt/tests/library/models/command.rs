//! The command on models: files in every form that goes in and comes out, and all that may be wrong.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

use super::TWO;
use super::wire::{self, bytes, node, number};

/// A folder of a test, gone when it is over.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// With a model as text and as ONNX, and inputs for it.
    pub(super) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tfrt-models-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let folder = Folder(path);
        folder.write("two.mlir", TWO);
        let nodes = [
            node("Add", "", &["x", "y"], "a", "first"),
            node("Relu", "", &["a"], "sum", "last"),
        ];
        folder.write("two.onnx", wire::model(&nodes));
        folder.write("x.json", "[[1, 2.5, -10]]");
        folder.write("y.json", "[[0, 0, 0]]");
        folder
    }

    /// Writes a file, in a folder that need not be there yet.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.unwrap().file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    /// Returns a command line that is to be run here.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
        command.args(line.split(' ')).current_dir(&self.0);
        command
    }

    /// Runs a command line, and returns its status and what it says.
    pub(super) fn run(&self, line: &str) -> (i32, String, String) {
        let output = self.command(line).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let status = output.status.code().unwrap_or(-1);
        (status, text(output.stdout), text(output.stderr))
    }

    /// Returns the standard output of a command line that must succeed without a word to people.
    pub(super) fn printed(&self, line: &str) -> String {
        let (status, stdout, stderr) = self.run(line);
        assert_eq!((status, stderr.as_str()), (0, ""), "{line}");
        stdout
    }

    /// Returns the standard error of a command line that must fail.
    pub(super) fn refused(&self, line: &str, status: i32) -> String {
        let (found, stdout, stderr) = self.run(line);
        assert_eq!((found, stdout.as_str()), (status, ""), "{line}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        stderr
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GIVEN: &str = "--input x=x.json --input y=y.json";

#[test]
fn model_runs_as_onnx_as_text_and_compiled() {
    let folder = Folder::new("kinds");
    let expected = "sum: f32 [1, 3] = [[1, 2.5, 0]]\n";
    assert_eq!(folder.printed(&format!("run two.onnx {GIVEN}")), expected);
    folder.printed("compile two.onnx -o two.bef");
    assert_eq!(folder.printed(&format!("run two.bef {GIVEN}")), expected);
    assert_eq!(
        folder.printed(&format!("run two.bef --mmap {GIVEN}")),
        expected
    );
    let expected = "sum: f32 [1, 3] = [[2, 4.5, -7]]\npositive: f32 [1, 3] = [[2, 4.5, 0]]\n";
    assert_eq!(folder.printed(&format!("run two.mlir {GIVEN}")), expected);
    folder.printed("compile two.mlir");
    assert_eq!(folder.printed(&format!("run two.bef {GIVEN}")), expected);
    // What can be looked at.
    assert!(folder.printed("opt two.onnx").contains("\"onnx.Relu\""));
    assert!(
        folder
            .printed("decompile two.onnx")
            .contains("model.inputs = [[\"x\"")
    );
    assert_eq!(
        folder
            .printed("check two.onnx two.mlir two.bef")
            .lines()
            .count(),
        3
    );
}

#[test]
fn outputs_of_one_form_are_inputs_of_the_next() {
    let folder = Folder::new("forms");
    let text = folder.printed(&format!("run two.onnx {GIVEN}"));
    for (format, file) in [("npy", "sum.npy"), ("pb", "sum.pb"), ("json", "sum.json")] {
        let line = format!("run two.onnx {GIVEN} --output-dir out --output-format {format}");
        assert_eq!(folder.printed(&line), "");
        // What is positive stays as it is.
        let line = format!("run two.onnx --input x=out/{file} --input y=y.json");
        assert_eq!(folder.printed(&line), text);
    }
    let line = format!("run two.onnx {GIVEN} --output other.json");
    assert_eq!(folder.printed(&line), "");
    assert_eq!(folder.read("other.json"), b"[[1.0,2.5,0.0]]\n");
    let line = format!("run two.mlir {GIVEN} --output positive=p.npy --output sum=s.pb");
    assert_eq!(folder.printed(&line), "");
    assert!(folder.read("p.npy").starts_with(b"\x93NUMPY"));
    let line = format!("run two.onnx {GIVEN} --output -  --output-format json");
    assert_eq!(
        folder.printed(&line.replace("  ", " ")),
        "[[1.0,2.5,0.0]]\n"
    );
}

#[test]
fn what_is_generated_is_the_same_each_time() {
    let folder = Folder::new("random");
    let line = "run two.onnx --random --dim N=4 --output-format json --output";
    folder.printed(&format!("{line} a.json"));
    folder.printed(&format!("{line} b.json"));
    folder.printed(&format!("{line} c.json --seed 1"));
    assert_eq!(folder.read("a.json"), folder.read("b.json"));
    assert_ne!(folder.read("a.json"), folder.read("c.json"));
    // An input that is given says how large the others are.
    folder.write("five.json", "[[0,0,0],[0,0,0],[0,0,0],[0,0,0],[0,0,0]]");
    let shown = folder.printed("run two.onnx --input x=five.json --random");
    assert!(shown.starts_with("sum: f32 [5, 3]"), "{shown}");
}

#[test]
fn largest_are_shown_with_labels() {
    let folder = Folder::new("top");
    folder.write("labels.txt", "cat\ndog\nfish\n");
    let shown = folder.printed(&format!("run two.onnx {GIVEN} --top 2 --labels labels.txt"));
    assert_eq!(shown, "sum: f32 [1, 3]\n  2.5  1  dog\n  1    0  cat\n");
    let shown = folder.printed(&format!("run two.onnx {GIVEN} --json --top 1"));
    let document: Json = serde_json::from_str(&shown).unwrap();
    assert_eq!(document["schema"], "tfrt.run-model/1");
    assert_eq!(document["outputs"][0]["top"][0][0]["index"], 1);
    let shown = folder.printed(&format!("run two.onnx {GIVEN} --json"));
    let document: Json = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        document["outputs"][0]["value"],
        serde_json::json!([[1.0, 2.5, 0.0]])
    );
    assert_eq!(document["exit_status"], 0);
}

#[test]
fn what_top_and_labels_do_not_fit_is_said() {
    let folder = Folder::new("top-misfits");
    let one = r#"func.func @main(%x: tensor<1x1xf32>) -> tensor<1x1xf32> attributes {
        model.input_names = ["x"], model.output_names = ["p"]} {
      %y = "onnx.Relu"(%x) : (tensor<1x1xf32>) -> tensor<1x1xf32>
      func.return %y : tensor<1x1xf32>
    }"#;
    folder.write("one.mlir", one);
    folder.write("few.txt", "cat\ndog\n");
    folder.write("many.txt", "cat\ndog\nfish\nbird\n");
    folder.write("fit.txt", "cat\ndog\nfish\n\n");
    let said = |line: &str| {
        let (status, _, said) = folder.run(line);
        assert_eq!(status, 0, "{line}: {said}");
        said
    };
    assert_eq!(
        said("run one.mlir --random --top 2"),
        "note: --top 2 has no effect: expected an output of numbers with at least 2 elements along its last \
         dimension, found p: f32 [1, 1]\n"
    );
    for (file, n) in [("few.txt", 2), ("many.txt", 4)] {
        assert_eq!(
            said(&format!("run two.onnx {GIVEN} --top 1 --labels {file}")),
            format!(
                "note: expected 3 labels, one for each element along the last dimension of 'sum' (f32 [1, 3]), \
                 found {n} in '{file}'\n"
            )
        );
    }
    let line = format!("run two.onnx {GIVEN} --top 3 --labels fit.txt");
    assert_eq!(said(&line), "");
    let document = said(&format!("{line} --message-format json").replace("fit", "few"));
    let document: Json = serde_json::from_str(&document).unwrap();
    let schema = "tfrt.labels-misfit/1";
    let expected = serde_json::json!({"schema": schema, "file": "few.txt", "output": "sum", "expected": 3, "found": 2});
    assert_eq!(document, expected);
}

/// Returns the picture as PNG, of which the first three pixels are red, green and blue.
fn png() -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 3, 1);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer
        .write_image_data(&[255, 0, 0, 0, 255, 0, 0, 0, 255])
        .unwrap();
    writer.finish().unwrap();
    file
}

#[test]
fn images_are_laid_out_and_normalised() {
    let folder = Folder::new("images");
    let text = |dims: &str, ty: &str| {
        format!(
            "func.func @main(%x: tensor<{ty}>) -> tensor<{ty}> attributes {{\n\
             model.input_names = [\"image\"], model.output_names = [\"same\"],\n\
             model.input_dims = [{dims}], model.output_dims = [{dims}]}} {{\n\
             %y = \"onnx.Identity\"(%x) : (tensor<{ty}>) -> tensor<{ty}>\n\
             func.return %y : tensor<{ty}>\n}}\n"
        )
    };
    let first = text("[\"N\", 3 : i64, \"H\", \"W\"]", "?x3x?x?xf32");
    folder.write(
        "first.mlir",
        format!("module attributes {{onnx.opset = 17 : i64}} {{\n{first}}}"),
    );
    let last = text("[1 : i64, 1 : i64, 3 : i64, 3 : i64]", "1x1x3x3xui8");
    folder.write(
        "last.mlir",
        format!("module attributes {{onnx.opset = 17 : i64}} {{\n{last}}}"),
    );
    folder.write("image.png", png());
    let to = "--output - --output-format json";
    let same = folder.printed(&format!("run first.mlir --input image.png {to}"));
    assert_eq!(
        same,
        "[[[[1.0,0.0,0.0]],[[0.0,1.0,0.0]],[[0.0,0.0,1.0]]]]\n"
    );
    let line = "run first.mlir --input image=image.png --mean 0.5 --std 0.5,1,0.25 --pixels unit";
    let same = folder.printed(&format!("{line} {to}"));
    assert_eq!(
        same,
        "[[[[1.0,-1.0,-1.0]],[[-0.5,0.5,-0.5]],[[-2.0,-2.0,2.0]]]]\n"
    );
    let same = folder.printed(&format!(
        "run last.mlir --input image.png --layout nhwc {to}"
    ));
    assert_eq!(same, "[[[[255,0,0],[0,255,0],[0,0,255]]]]\n");
    let line = "run first.mlir --input image.png --dim H=2 --dim W=6";
    let shown = folder.printed(line);
    assert!(shown.starts_with("same: f32 [1, 3, 2, 6]"), "{shown}");
    let said = folder.refused("run last.mlir --input image.png --layout nhwc --mean 1", 1);
    assert!(
        said.contains("--mean and --std are for models that take floats"),
        "{said}"
    );
}

#[test]
fn archives_and_optional_names() {
    let folder = Folder::new("archives");
    folder.printed(&format!("run two.onnx {GIVEN} --output a.npy"));
    let runtime = tfrt::Runtime::new();
    let allocator = runtime.host().allocator();
    let tensor = tfrt::tensor::npy::read(&folder.read("a.npy"), allocator).unwrap();
    let archive = tfrt::tensor::npz::write([("x", &tensor), ("other", &tensor)]).unwrap();
    folder.write("a.npz", archive);
    let expected = folder.printed("run two.onnx --input x=a.npy --input y=a.npy");
    let line = "run two.onnx --input x=a.npz --input y=a.npz:other";
    assert_eq!(folder.printed(line), expected);
    let said = folder.refused("run two.onnx --input x=a.npz --input y=a.npz", 1);
    assert!(said.contains("no array 'y', but x, other"), "{said}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_file() {
    let folder = Folder::new("misfits");
    folder.write("junk", b"\xff\xfe\x00junk");
    folder.write("cut.npy", b"\x93NUMPY\x01\x00");
    folder.write("cut.png", &png()[..40]);
    folder.write("cut.pb", [0x08, 0x01, 0x4a, 0x7f]);
    folder.write("two.json", "[[1,2,3],[4,5,6]]");
    folder.write("ragged.json", "[[1,2,3],[4]]");
    folder.write("words.json", "[[\"a\",\"b\",\"c\"]]");
    folder.write("open.json", "[[1,2");
    folder.write("doubles.npy", doubles());
    let cases = [
        (
            "",
            2,
            "the model takes the inputs x: f32 [N, 3], y: f32 [N, 3]: give them with --input",
        ),
        (
            "--input x=x.json",
            2,
            "the model takes the input y: f32 [N, 3]: give it with --input",
        ),
        ("--input z=x.json --random", 2, "the model has no input 'z'"),
        (
            "--input x.json --random",
            2,
            "--input takes NAME=FILE, found 'x.json'",
        ),
        (
            "--input x=x.json --input x=x.json --random --output a.npy",
            2,
            "--output is for one call, but inputs are given for 2",
        ),
        (
            "--input x=- --input y=-",
            2,
            "standard input can be read once only",
        ),
        (
            "--input x=missing.npy --random",
            1,
            "cannot read input 'x' from 'missing.npy': No such file",
        ),
        (
            "--input x=junk --random",
            1,
            "it is no .npy, .npz, .safetensors, .pb, .json, PNG, JPEG or WAV file",
        ),
        (
            "--input x=cut.npy --random",
            1,
            "from 'cut.npy': not a readable .npy file",
        ),
        (
            "--input x=cut.png --random",
            1,
            "an image has 3 dimensions, or 4",
        ),
        ("--input x=cut.pb --random", 1, "from 'cut.pb'"),
        ("--input x=missing/ --random", 1, "from 'missing/': "),
        (
            "--input x=two.json --input y=y.json",
            1,
            "N is 1 here, but 2 in input 'x'",
        ),
        (
            "--input x=ragged.json --random",
            1,
            "expected 3 at [1], found 1",
        ),
        (
            "--input x=words.json --random",
            1,
            "expected a number at [0, 0], found \"a\"",
        ),
        ("--input x=open.json --random", 1, "it is no JSON: EOF"),
        (
            "--input x=doubles.npy --random",
            1,
            "expected elements of f32, found f64 (in NumPy: array.astype(np.float32))",
        ),
        ("--random --dim M=3", 2, "no input has a dimension 'M'"),
        (
            "--random --dim N",
            2,
            "expected NAME=N, such as batch=4, found 'N'",
        ),
        ("--random --dim N=99999999999", 2, "has more than"),
        (
            "--random --output z=a.npy",
            2,
            "the model has no output 'z'",
        ),
        (
            "--random --output a.npy --output b.npy",
            2,
            "output 'sum' is given twice",
        ),
        (
            "--random --output two.onnx",
            2,
            "'two.onnx' is the input, which would be lost",
        ),
        (
            "--input x=x.json --input y=y.json --output x.json",
            2,
            "'x.json' is the input",
        ),
        (
            "--random --output missing/a.npy",
            1,
            "cannot write 'missing/a.npy': No such file",
        ),
        (
            "--random --output - --json",
            2,
            "standard output is for the document",
        ),
        ("--random --top 0", 2, "0 is not in 1..=1000"),
        (
            "--random --top 1 --labels missing",
            1,
            "cannot read labels from 'missing'",
        ),
        (
            "--random --top 1 --labels /dev/zero",
            1,
            "it is larger than the limit of 16777216 bytes",
        ),
        (
            "--random --output a.npy --profile ./a.npy",
            2,
            "'./a.npy' is named for an output and with --profile",
        ),
    ];
    let before = folder.names();
    for (flags, status, expected) in cases {
        let line = format!("run two.onnx {flags}");
        let said = folder.refused(line.trim(), status);
        assert!(said.contains(expected), "{line}\n{said}");
    }
    let said = folder.refused("run two.mlir --function main --random", 2);
    assert!(
        said.contains("are for models") || said.contains("main"),
        "{said}"
    );
    assert_eq!(folder.names(), before);
}

/// Returns an array of three doubles.
pub(super) fn doubles() -> Vec<u8> {
    let mut header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }".to_vec();
    header.resize(117, b' ');
    header.push(b'\n');
    [b"\x93NUMPY\x01\x00\x76\x00".to_vec(), header, vec![0; 24]].concat()
}

#[test]
fn operations_are_found_by_patterns() {
    let folder = Folder::new("patterns");
    let (status, stdout, _) = folder.run("kernels graph.log*");
    let names: Vec<&str> = stdout
        .lines()
        .filter(|line| !line.starts_with(' '))
        .collect();
    assert_eq!(
        (status, names),
        (
            0,
            vec![
                "graph.log(x: tensor of T) -> (y: tensor of T)",
                "graph.log1p(x: tensor of T) -> (y: tensor of T)",
            ]
        )
    );
    let (status, stdout, _) = folder.run("kernels --json tf.Re*u*");
    let document: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (status, &document["kernels"]),
        (0, &Json::Array(Vec::new()))
    );
    let operations = document["operations"].as_array().unwrap();
    let relu = operations
        .iter()
        .find(|operation| operation["name"] == "tf.Relu");
    assert_eq!(relu.unwrap()["summary"], "The larger of each element and 0");
}

#[test]
fn operations_of_models_are_refused_elsewhere() {
    let folder = Folder::new("elsewhere");
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = \"graph.relu\"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  tfrt.return %y : tensor<2xf32>
}
";
    folder.write("f.mlir", text);
    for command in ["run f.mlir", "compile f.mlir", "check f.mlir"] {
        let (status, _, said) = folder.run(command);
        assert_eq!(status, 1);
        assert!(
            said.starts_with(
                "f.mlir:2:8: error: 'graph.relu' op is for functions that are models [TF0516]"
            ),
            "{said}"
        );
        assert!(
            said.contains("help: say what the function's inputs and outputs are called"),
            "{said}"
        );
    }
}

#[test]
fn models_are_measured() {
    let folder = Folder::new("bench");
    let shown = folder.printed("bench two.onnx --dim N=2 --runs 20 --warm-up 1ms --json");
    let document: Json = serde_json::from_str(&shown).unwrap();
    assert_eq!(document["calls"], 20);
    assert!(document["p99_ns"].as_f64().unwrap() > 0.0);
    let shown = folder.printed(&format!("bench two.mlir {GIVEN} --runs 20 --warm-up 1ms"));
    assert!(shown.contains("20 calls"), "{shown}");
    let said = folder.refused("bench two.onnx --input z=x.json", 2);
    assert!(said.contains("the model has no input 'z'"), "{said}");
}

#[test]
fn profiles_and_traces_are_made_of_models() {
    let folder = Folder::new("profile");
    let line = "run two.onnx --random --profile page.html --trace run.pftrace --output a.npy";
    let (status, _, stderr) = folder.run(line);
    assert_eq!(status, 0, "{stderr}");
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    assert!(page.contains("\"cpu."));
    assert!(!folder.read("run.pftrace").is_empty());
}

#[test]
fn models_are_inspected_as_text_and_as_pages() {
    let folder = Folder::new("inspect");
    folder.printed("compile two.mlir -o two.bef");
    for file in ["two.mlir", "two.onnx", "two.bef"] {
        let shown = folder.printed(&format!("inspect graph {file}"));
        assert!(
            shown.contains("main(") && shown.contains("returns"),
            "{shown}"
        );
        let shown = folder.printed(&format!("inspect memory {file} --dim N=2"));
        assert!(shown.contains("second call"), "{shown}");
        let shown = folder.printed(&format!("inspect weights {file}"));
        assert!(
            shown.contains(": 1 constants, 3 elements, 12 B") || file == "two.onnx",
            "{shown}"
        );
        for view in ["graph", "memory", "weights"] {
            folder.printed(&format!("inspect {view} {file} --html page.html"));
            let page = String::from_utf8(folder.read("page.html")).unwrap();
            assert!(page.contains(&format!("tfrt.inspect-{view}/1")));
            assert!(!page.contains("src=") && !page.contains("href="));
            let document = folder.printed(&format!("inspect {view} {file} --json"));
            let document: Json = serde_json::from_str(&document).unwrap();
            assert_eq!(document["file"], file);
        }
    }
    let shown = folder.printed("inspect graph two.onnx");
    assert!(shown.contains("2 operations: 1 Add, 1 Relu"), "{shown}");
    assert!(shown.contains(" = Relu(%2)  last"), "{shown}");
    // Shapes that the model leaves open follow from its inputs'.
    assert!(shown.contains("tensor<?x3xf32> [N, 3] = Relu"), "{shown}");
    folder.refused("inspect pictures two.onnx", 2);
    folder.refused("inspect graph two.onnx --html two.onnx", 2);
}

#[test]
fn broken_models_are_refused() {
    let folder = Folder::new("broken");
    let whole = folder.read("two.onnx");
    folder.write("cut.onnx", &whole[..whole.len() / 2]);
    folder.write("empty.onnx", []);
    folder.write("text.onnx", "this is no model");
    folder.write("graph.onnx", [number(1, 8), bytes(7, [0xff; 9])].concat());
    for name in ["cut.onnx", "empty.onnx", "text.onnx", "graph.onnx"] {
        for command in ["run", "compile", "check", "bench", "opt", "decompile"] {
            let (status, _, stderr) = folder.run(&format!("{command} {name}"));
            assert_eq!(status, 1, "{command} {name}: {stderr}");
            assert!(
                stderr.contains(name) && !stderr.contains("panicked"),
                "{stderr}"
            );
        }
    }
}

#[test]
fn files_of_a_run_appear_together_or_not_at_all() {
    let folder = Folder::new("together");
    folder.write("old.npy", "old");
    let before = folder.names();
    let line = "run two.mlir --random --output-dir new/deep --output sum=old.npy";
    let cases = [
        ("--output positive=/dev/full", ""),
        ("--profile /dev/full", ""),
        ("--trace /dev/full --profile page.html", ""),
        ("--profile page.html --output positive=missing/p.npy", ""),
        ("--profile page.html --json", "/dev/full"),
        ("--profile page.html --allocator profiled", "/dev/full"),
    ];
    for (flags, stdout) in cases {
        let line = format!("{line} {flags}");
        let mut command = folder.command(&line);
        if !stdout.is_empty() {
            let stdout = fs::File::options().write(true).open(stdout).unwrap();
            command.stdout(stdout);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("cannot write"), "{line}: {said}");
        assert_eq!(folder.names(), before, "{line}");
        assert_eq!(folder.read("old.npy"), b"old", "{line}");
    }
    // What is shown is an output as well.
    let line = "run two.mlir --random --output sum=old.npy --trace run.pftrace";
    let mut command = folder.command(line);
    let full = fs::File::options().write(true).open("/dev/full");
    assert_eq!(
        command.stdout(full.unwrap()).status().unwrap().code(),
        Some(1)
    );
    assert_eq!(folder.names(), before);
    let (status, _, said) = folder.run(&format!("{line} --output-dir new/deep"));
    assert_eq!(status, 0, "{said}");
    assert!(folder.read("old.npy").starts_with(b"\x93NUMPY"));
    assert!(
        folder
            .read("new/deep/positive.npy")
            .starts_with(b"\x93NUMPY")
    );
    assert!(!folder.read("run.pftrace").is_empty());
}

#[test]
fn nothing_is_written_over_what_was_read() {
    let folder = Folder::new("read");
    let nodes = [
        node("Add", "", &["x", "w"], "a", "first"),
        node("Add", "", &["a", "y"], "sum", "last"),
    ];
    folder.write("m.onnx", wire::model_with("w", "w.bin", &nodes));
    folder.write("w.bin", [0; 12]);
    folder.write("labels.txt", "cat\n");
    folder.printed(&format!("run m.onnx {GIVEN} --output x.npy"));
    let archive = {
        let runtime = tfrt::Runtime::new();
        let tensor = tfrt::tensor::npy::read(&folder.read("x.npy"), runtime.host().allocator());
        tfrt::tensor::npz::write([("x", &tensor.unwrap())]).unwrap()
    };
    folder.write("x.npz", archive);
    std::os::unix::fs::symlink("w.bin", folder.0.join("link.bin")).unwrap();
    let before = folder.names();
    let contents: Vec<_> = before.iter().map(|name| folder.read(name)).collect();
    let cases = [
        ("compile m.onnx -o", "w.bin", "-o"),
        ("compile m.onnx -o", "./link.bin", "-o"),
        ("compile m.onnx -o", "m.onnx", "-o"),
        ("decompile m.onnx -o", "w.bin", "-o"),
        ("inspect graph m.onnx --html", "w.bin", "--html"),
        ("inspect weights m.onnx --html", "m.onnx", "--html"),
        (
            "inspect memory m.onnx --input x=x.npy --html",
            "x.npy",
            "--html",
        ),
        ("run m.onnx --random --output", "w.bin", "--output"),
        ("run m.onnx --random --profile", "w.bin", "--profile"),
        ("run m.onnx --random --trace", "link.bin", "--trace"),
        (
            "run m.onnx --random --input x=x.npz:x --output",
            "x.npz",
            "--output",
        ),
        (
            "run m.onnx --random --input x=x.npy --profile",
            "x.npy",
            "--profile",
        ),
        (
            "run m.onnx --random --top 1 --labels labels.txt --output",
            "labels.txt",
            "--output",
        ),
        (
            "run m.onnx --random --top 1 --labels labels.txt --trace",
            "labels.txt",
            "--trace",
        ),
    ];
    for (line, file, option) in cases {
        let said = folder.refused(&format!("{line} {file}"), 2);
        let expected = format!(
            "'{file}' is the input, which would be lost; name another file with {option}\n"
        );
        assert!(said.ends_with(&expected), "{line}: {said}");
    }
    assert_eq!(folder.names(), before);
    for (name, content) in before.iter().zip(contents) {
        assert_eq!(folder.read(name), content, "{name}");
    }
    // A compiled program says which text it was made of, which the page shows.
    let text = "func.func @main() {\n  %c = tfrt.new.chain\n  tfrt.return\n}\n";
    folder.write("made.mlir", text);
    folder.printed("compile made.mlir");
    let (status, _, said) = folder.run("run made.bef --profile ./made.mlir");
    assert!(status == 2 && said.contains("would be lost"), "{said}");
    assert_eq!(folder.read("made.mlir"), text.as_bytes());
    let said = folder.refused("run m.onnx --random --untrusted", 1);
    assert!(
        said.contains("which is refused to programs of strangers"),
        "{said}"
    );
}

#[test]
fn standard_input_is_read_once_only() {
    let folder = Folder::new("once");
    for words in ["run", "bench", "inspect memory"] {
        let mut command = folder.command(&format!("{words} - --input x=- --random"));
        let model = fs::File::open(folder.0.join("two.mlir")).unwrap();
        let output = command.stdin(model).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = "'-' is given 2 times, but standard input can be read once only";
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_model_without_an_operator_set_runs_with_a_warning() {
    let folder = Folder::new("no-set");
    let nodes = [node("Add", "", &["x", "y"], "sum", "first")];
    let mut model = wire::model(&nodes);
    let own = [bytes(1, ""), number(2, 17)].concat();
    let at = model.windows(own.len()).rposition(|part| part == own);
    model.truncate(at.unwrap() - 2);
    folder.write("old.onnx", model);
    let (status, shown, said) = folder.run("check old.onnx");
    assert!(
        status == 0 && shown.starts_with("old.onnx: ok"),
        "{shown}{said}"
    );
    let wanted = "warning: the model has no version of the operator set 'ai.onnx': it is taken for 27, the newest [TF1004]";
    assert!(said.contains(wanted), "{said}");
    let (status, shown, _) = folder.run(&format!("run old.onnx {GIVEN}"));
    assert_eq!(
        (status, shown.as_str()),
        (0, "sum: f32 [1, 3] = [[1, 2.5, -10]]\n")
    );
}

#[test]
fn sizes_that_were_guessed_are_told_where_a_model_fails_with_them() {
    let folder = Folder::new("guessed");
    folder.write(
        "wide.mlir",
        r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x?x4xf32>, %z: tensor<?x?xf32>) -> tensor<*xf32>
      attributes {model.input_names = ["x", "z"], model.output_names = ["y"],
                  model.input_dims = [["batch", "time", 4 : i64], ["batch", ""]], model.output_dims = [unit]} {
    %s = "onnx.Constant"() {value = dense<[6, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
    %y = "onnx.Reshape"(%x, %s) : (tensor<?x?x4xf32>, tensor<2xi64>) -> tensor<*xf32>
    func.return %y : tensor<*xf32>
  }
}
"#,
    );
    let said = folder.refused("run wide.mlir --random", 3);
    let advice =
        "help: --random took 1 for the size of 'batch', 'time': say another with --dim NAME=SIZE";
    assert!(said.contains(advice), "{said}");
    let nameless = "--random took 1 for sizes without a name, of 'z': give what has others with --input NAME=FILE";
    assert!(said.contains(nameless), "{said}");
    folder.write("z.json", "[[1, 2], [3, 4]]");
    let said = folder.refused("run wide.mlir --random --dim time=2 --input z=z.json", 3);
    assert!(!said.contains("--random took"), "{said}");
    folder.printed("run wide.mlir --random --dim time=3");
}
