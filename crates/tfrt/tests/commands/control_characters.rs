//! A terminal obeys control characters: none that a program or a file's name holds gets there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Its functions, its file and its outputs have names that clear a screen and end lines.
const PROGRAM: &str = r#"
func.func @"\1B[2J\0A'other' returned 1"() -> i32 {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32
}
func.func @"takes\1B[2J"(%x: i32) -> i32 {
  tfrt.return %x : i32
}
func.func @fails() -> i32 {
  %x = tfrt.constant.i32 1
  %z = tfrt.constant.i32 0
  %q, %r = tfrt.div.i32 %x, %z loc("\1B[2J\0Aerror":1:2)
  tfrt.return %q : i32
}
func.func @fails_too() -> i32 {
  %x = tfrt.constant.i32 1
  %z = tfrt.constant.i32 0
  %q, %r = tfrt.div.i32 %x, %z loc("\1B[2J\0Aerror")
  tfrt.return %q : i32
}
"#;

const MODEL: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
      attributes {model.input_names = ["x\1B[2J\0Aerror"], model.output_names = ["y\0A\C2\9B2J"], model.input_dims = [["N\0Aerror"]],
                  model.output_dims = [["N\0Aerror"]]} {
    %y = "onnx.Tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32> loc("\1B[2J")
    func.return %y : tensor<?xf32>
  }
}
"#;

const PRINTING: &str = r#"
func.func @main() {
  %strings = corert.const_string_tensor {shape = [1], value = ["a\1B[2Jb"]}
  %chain = tfrt.new.chain
  %done = "corert.print_tensorhandle"(%strings, %chain) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return
}
"#;

const NO_KERNEL: &str = r#"
func.func @main() -> i32 {
  %x = "tfrt.\0Aerror: another\0Aline"() : () -> i32
  tfrt.return %x : i32
}
"#;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("tfrt-control-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command; gives what it says in all, and its status.
fn said(arguments: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut said = String::from_utf8(output.stdout).unwrap();
    said.push_str(&String::from_utf8(output.stderr).unwrap());
    (said, output.status.code())
}

#[test]
fn none_is_shown() {
    let folder = Folder::new();
    let program = folder.file("program.mlir", PROGRAM);
    let model = folder.file("model.mlir", MODEL);
    let printing = folder.file("printing.mlir", PRINTING);
    let wrong = folder.file(
        "wrong\u{1b}[2J\n.mlir",
        "func.func @main() { tfrt.nope // \u{1b}[2J \u{9b}2J\n}",
    );
    let bef = folder.0.join("program.bef").to_str().unwrap().to_owned();
    let no_kernel = folder.file("kernel.mlir", NO_KERNEL);
    let no_kernel_bef = folder.0.join("kernel.bef").to_str().unwrap().to_owned();
    let missing = folder
        .0
        .join("missing\u{1b}[2J\nerror")
        .display()
        .to_string();
    let cases: &[(&[&str], i32)] = &[
        (&["run", &program], 3),
        (&["run", &program, "--message-format=short"], 3),
        (&["run", &program, "--message-format=json"], 3),
        (&["run", &program, "--json"], 3),
        (&["run", &program, "--stats"], 3),
        (&["run", &program, "--function", "takes\u{1b}[2K"], 1),
        (&["run", &model, "--random"], 0),
        (&["run", &model, "--random", "--top=1"], 0),
        (&["run", &model, "--random", "--stats"], 0),
        (&["run", &model, "--random", "--json"], 0),
        (&["run", &model], 2),
        (&["run", &model, "--random", "--dim", "M=3"], 2),
        (&["run", &model, "--input", "z=z.npy"], 2),
        (&["run", &model, "\u{1b}[2J"], 2),
        (&["run", &model, "--queue", "\u{9b}2J"], 2),
        (&["run", "--untrusted", &printing], 0),
        (&["run", "--untrusted", "--json", &printing], 0),
        (&["run", &wrong], 1),
        (&["run", &missing], 1),
        (&["check", &program, &wrong, &missing], 1),
        (&["check", &wrong, "--message-format=short"], 1),
        (&["run", &no_kernel], 1),
        (&["run", &no_kernel, "--message-format=short"], 1),
        (&["compile", &no_kernel, "-o", &no_kernel_bef], 0),
        (&["run", &no_kernel_bef], 1),
        (&["compile", &program, "-o", &bef], 0),
        (&["compile", &wrong, "-o", &bef], 1),
        (&["run", &bef], 3),
        (&["bench", &bef, "--time=50ms", "--function=fails"], 3),
        (&["dump", &bef], 0),
        (&["decompile", &bef], 0),
        (&["inspect", "graph", &bef], 0),
        (&["inspect", "graph", &model], 0),
        (&["inspect", "memory", &model], 0),
        (&["inspect", "weights", &model], 0),
        (&["dump", "--json", &bef], 0),
        (&["diff", &program, &model], 1),
        (&["kernels", "tfrt.\u{1b}[2J"], 1),
        (&["explain", "\u{1b}[2J"], 1),
    ];
    for (arguments, status) in cases {
        let (said, found) = said(arguments);
        let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        assert!(!said.contains(hidden), "{arguments:?}: {said:?}");
        assert!(!said.contains("\nerror"), "{arguments:?}: {said:?}");
        assert!(!said.contains("\n'other'"), "{arguments:?}: {said:?}");
        assert_eq!(found, Some(*status), "{arguments:?}: {said}");
    }
    // A message of one line has all of the name.
    for file in [&no_kernel, &no_kernel_bef] {
        let (said, _) = said(&["run", file, "--message-format=short"]);
        assert_eq!(
            said.matches("\\nerror: another\\nline").count(),
            1,
            "{said}"
        );
    }
    assert!(Path::new(&bef).exists());
    // What a trusted program prints is its own.
    assert!(said(&["run", &printing]).0.contains("a\u{1b}[2Jb"));
}
