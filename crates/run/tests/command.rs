//! The command `tfrt-run` from outside: results, messages and exit statuses. `TFRT_RUN_PROGRAM` names
//! another build of it than the one beside this test.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

use tfrt_compiler::CompileOptions;
use tfrt_ir::Source;

const PROGRAM: &str = "\
func.func @answer() -> i32 {
  %chain = tfrt.new.chain
  %x = tfrt.constant.i32 21
  %y = tfrt.add.i32 %x, %x
  %done = tfrt.print.i32 %y, %chain
  tfrt.return %y : i32
}
func.func @half(%x: i32, %zero: i32) -> i32 {
  %y, %rest = tfrt.div.i32 %x, %zero
  tfrt.return %y : i32
}
";

/// Compiles a text to a file that has the name of the test.
fn compile(test: &str, text: &str) -> PathBuf {
    let source = Source::new("program.mlir", text);
    let module = tfrt_ir::parse(&source).expect("the text is a program");
    let bytes = tfrt_compiler::compile(&module, &CompileOptions::default());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.bef"));
    fs::write(&path, bytes.expect("it compiles").as_bytes()).expect("the folder is there");
    path
}

fn run(words: &[&str]) -> Output {
    let program = env::var_os("TFRT_RUN_PROGRAM");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_tfrt-run").into());
    Command::new(program)
        .args(words)
        .output()
        .expect("the command was built")
}

#[track_caller]
fn check(words: &[&str], status: i32, printed: &str, said: &str) {
    let output = run(words);
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    assert_eq!(output.status.code(), Some(status));
}

#[test]
fn results_are_those_of_tfrt_run() {
    let path = compile("results", PROGRAM);
    let printed = "--- Running 'answer':\nint32 = 42\n'answer' returned 42\n\
                   --- Not running 'half' because it has arguments.\n";
    let file = path.to_str().unwrap();
    check(&[file], 0, printed, "");
    let printed = "--- Running 'half':\n'half' returned 4\n";
    let words = ["--function", "half", "--arg=8", "--arg", "2"];
    for queue in ["--queue=single", "--queue=multi:2"] {
        check(&[&words[..], &[queue, file]].concat(), 0, printed, "");
    }
}

#[test]
fn errors_are_told_with_their_places() {
    let path = compile("errors", PROGRAM);
    let words = [
        "--function",
        "half",
        "--arg=8",
        "--arg=0",
        path.to_str().unwrap(),
    ];
    let printed = "--- Running 'half':\n'half' returned <<error: Divide by zero>>\n";
    let said = "program.mlir:9:15: error: runtime error: Divide by zero\n";
    check(&words, 3, printed, said);
}

#[test]
fn misfits_are_refused_in_words() {
    let path = compile("misfits", PROGRAM);
    let file = path.to_str().unwrap();
    let said = "tfrt-run: error: couldn't find function nothing\n";
    check(&["--function=nothing", file], 1, "", said);
    let said = "tfrt-run: error: --arg is given 3 times, but no function takes so many arguments\n";
    check(&["--arg=1", "--arg=2", "--arg=3", file], 2, "", said);
    let said = "tfrt-run: error: a file is expected; `tfrt-run --help` tells more\n";
    check(&[], 2, "", said);
    let unknown = compile(
        "unknown",
        "func.func @f() -> i32 {\n  %x = \"tfrt_test.panic\"() : () -> i32\n  tfrt.return %x : i32\n}\n",
    );
    let said = "program.mlir:2:8: error: unknown kernel name 'tfrt_test.panic' [TF0701]\n";
    check(&[unknown.to_str().unwrap()], 1, "", said);
    let said =
        "tfrt-run: error: cannot open input file '/nonexistent': No such file or directory\n";
    check(&["/nonexistent"], 1, "", said);
}

#[test]
fn text_and_broken_bytes_are_refused() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (text, broken) = (folder.join("text.mlir"), folder.join("broken.bef"));
    fs::write(&text, PROGRAM).unwrap();
    fs::write(&broken, [0x0b, 0xef, 0, 1]).unwrap();
    for path in [text, broken] {
        let output = run(&[path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn status_does_not_depend_on_who_reads() {
    let path = compile("unread", PROGRAM);
    let program = env::var_os("TFRT_RUN_PROGRAM");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_tfrt-run").into());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(program)
        .args(["--function=half", "--arg=8", "--arg=0"])
        .arg(path)
        .stdout(writer)
        .output()
        .expect("the command was built");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Divide by zero"), "{said}");
}
