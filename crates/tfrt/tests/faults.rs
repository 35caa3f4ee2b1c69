//! What the command says to bad input and to programs that misbehave, one line each: nothing
//! panics, hangs or leaks, and the exit status tells what kind of trouble it was.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any of these takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One kind of trouble.
struct Fault {
    name: &'static str,
    /// What the file holds.
    input: Input,
    /// The command line; `FILE` stands for the file.
    line: &'static str,
    status: i32,
    /// What must be said, on either stream.
    says: &'static str,
}

/// What a file holds.
enum Input {
    /// Nothing is made: the path leads nowhere.
    Missing,
    Bytes(&'static [u8]),
    Text(&'static str),
    /// The body of `main`, which returns an `i32` called `%r`.
    Body(&'static str),
    /// The first bytes of a compiled program.
    Cut(usize),
    /// A compiled program with one byte changed.
    Changed(usize),
}

use Input::{Body, Bytes, Changed, Cut, Missing, Text};

/// Repeats `Fault { .. }`.
const fn fault(
    name: &'static str,
    input: Input,
    line: &'static str,
    status: i32,
    says: &'static str,
) -> Fault {
    Fault {
        name,
        input,
        line,
        status,
        says,
    }
}

const RECURSION: &str = "func.func @main() -> i32 {
  %r = tfrt.call @main() : () -> (i32)
  tfrt.return %r : i32
}";

const LOOP: &str = "func.func @main() -> i32 {
  %z = tfrt.constant.i32 0
  %t = tfrt.constant.i1 1
  %r = tfrt.while %t @turn(%z) parallel_iterations(1) : (i32) -> (i32)
  tfrt.return %r : i32
}
func.func @turn(%x: i32) -> (i32, i1) {
  %t = tfrt.constant.i1 1
  tfrt.return %x, %t : i32, i1
}";

#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    // The file.
    fault("no such file", Missing, "run FILE", 1, "cannot open input file"),
    fault("a folder", Missing, "run /", 1, "Is a directory"),
    fault("not UTF-8", Bytes(b"func\xff"), "run FILE", 1, ":1:5: error: expected UTF-8"),
    fault("magic alone", Bytes(b"\x0b\xef"), "run FILE", 1, "Unknown BEF format version"),
    fault("future version", Bytes(b"\x0b\xef\x07"), "run FILE", 1, "Unknown BEF format version detected: 7"),
    fault("header alone", Bytes(b"\x0b\xef\x00"), "run FILE", 1, "byte 0x3"),
    fault("endless integer", Bytes(b"\x0b\xef\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "run FILE", 1, "byte 0x"),
    fault("cut file", Cut(100), "run FILE", 1, "byte 0x"),
    fault("cut in the last byte", Cut(usize::MAX), "run FILE", 1, "byte 0x"),
    fault("changed byte", Changed(3), "run FILE", 1, "byte 0x"),
    fault("bytes for the parser", Cut(100), "opt FILE", 1, "expected MLIR text"),
    fault("bytes for the compiler", Cut(100), "compile FILE -o FILE.out", 1, "expected MLIR text"),
    // The text.
    fault("no program at all", Text("%&!"), "run FILE", 1, ":1:1: error:"),
    fault("unclosed body", Text("func.func @f() {"), "run FILE", 1, "error:"),
    fault("unclosed string", Body("%r = \"tfrt.x"), "run FILE", 1, "error:"),
    fault("undefined value", Body("%r = tfrt.add.i32 %a, %a"), "run FILE", 1, "%a"),
    fault("use before definition", Body("%r = tfrt.add.i32 %a, %a\n%a = tfrt.constant.i32 1"), "run FILE", 1, "error:"),
    fault("value defined twice", Body("%r = tfrt.constant.i32 1\n%r = tfrt.constant.i32 1"), "run FILE", 1, "error:"),
    fault("wrong type", Body("%a = tfrt.constant.i64 1\n%r = \"tfrt.add.i32\"(%a, %a) : (i64, i64) -> i32"), "run FILE", 1, "error:"),
    fault("wrong count", Body("%r = \"tfrt.constant.i32\"() : () -> i32"), "run FILE", 1, "requires attribute 'value'"),
    fault("number too large", Body("%r = tfrt.constant.i32 99999999999"), "run FILE", 1, "error:"),
    fault("unknown operation", Body("%r = tfrt.nonsense %x"), "run FILE", 1, "is unknown"),
    fault("missing return", Text("func.func @f() {\n  %c = tfrt.new.chain\n}"), "run FILE", 1, "error:"),
    fault("duplicate function", Text("func.func @f() {\n tfrt.return\n}\nfunc.func @f() {\n tfrt.return\n}"), "run FILE", 1, "'f'"),
    fault("unknown callee", Body("%r = tfrt.call @nobody() : () -> (i32)"), "run FILE", 1, "nobody"),
    fault("wrong result of a function", Text("func.func @f() -> i32 {\n  %c = tfrt.new.chain\n  tfrt.return %c : !tfrt.chain\n}"), "run FILE", 1, "error:"),
    fault("two faults at once", Body("%r = tfrt.nonsense1 %x\n%s = tfrt.nonsense2 %x"), "check FILE", 1, "nonsense2"),
    // Load.
    fault("unknown kernel", Body("%r = \"my.kernel\"() : () -> i32"), "run FILE", 1, "unknown kernel name 'my.kernel'"),
    fault("misspelt kernel", Body("%r = \"tfrt_test.fial\"() : () -> i32"), "run FILE", 1, "there is a kernel 'tfrt_test.fail'"),
    fault("wrong signature", Body("%r = \"tfrt_test.count3.i32\"() : () -> i32"), "run FILE", 1, "tfrt_test.count3.i32"),
    fault("unknown native function", Text("func.func private @nobody() attributes {tfrt.native}"), "run FILE", 1, "unable to find native function"),
    // The command line.
    fault("no file named", Missing, "run", 2, "required"),
    fault("unknown command", Missing, "rnu FILE", 2, "rnu"),
    fault("unknown option", Missing, "run --frob FILE", 2, "--frob"),
    fault("unknown queue", Missing, "run --queue double FILE", 2, "single"),
    fault("no threads", Missing, "run --queue multi:0 FILE", 2, "from 1 to"),
    fault("unknown allocator", Missing, "run --allocator free FILE", 2, "leak-check"),
    fault("time without unit", Missing, "run --deadline 500 FILE", 2, "500ms"),
    fault("size without sense", Missing, "run --max-memory lots FILE", 2, "64KiB"),
    fault("unknown function", Body("%r = tfrt.constant.i32 1"), "run --function nobody FILE", 1, "couldn't find function nobody"),
    fault("argument for nobody", Body("%r = tfrt.constant.i32 1"), "run --arg 1 FILE", 2, "--arg is given 1 time"),
    fault("argument of a wrong type", Text("func.func @f(%x: i32) {\n  tfrt.return\n}"), "run --arg seven FILE", 2, "found 'seven'"),
    fault("too many arguments", Text("func.func @f(%x: i32) {\n  tfrt.return\n}"), "run --function f --arg 1 --arg 2 FILE", 2, "'f' takes (i32)"),
    fault("output nowhere", Body("%r = tfrt.constant.i32 1"), "compile FILE -o /nowhere/x.bef", 1, "cannot write '/nowhere/x.bef'"),
    // The run.
    fault("division by zero", Body("%a = tfrt.constant.i32 1\n%b = tfrt.constant.i32 0\n%r, %s = tfrt.div.i32 %a, %b"), "run FILE", 3, "<<error: Divide by zero>>"),
    fault("failing kernel", Body("%r = \"tfrt_test.fail\"() : () -> i32"), "run FILE", 3, "<<error: something bad happened>>"),
    fault("failing kernel, its code", Body("%r = \"tfrt_test.fail\"() : () -> i32"), "run --print-error-code FILE", 3, ", code: Unknown>>"),
    fault("late failure", Body("%r = \"tfrt_test.report_error_async\"() : () -> i32"), "run FILE", 3, "something bad happened asynchronously"),
    fault("kernel that panics", Body("%r = \"tfrt_test.panic\"() : () -> i32"), "run FILE", 3, "the kernel panicked"),
    fault("kernel that never resolves", Body("%r = \"tfrt_test.never\"() : () -> i32"), "run FILE", 3, "'tfrt_test.never'"),
    fault("the same without results", Text("func.func @f() {\n  %r = \"tfrt_test.never\"() : () -> i32\n  tfrt.return\n}"), "run FILE", 3, "the request is stuck"),
    fault("kernel that drops its promise", Body("%r = \"tfrt_test.drop_promise\"() : () -> i32"), "run FILE", 3, "promise"),
    fault("kernel with a result too many", Body("%r = \"tfrt_test.wrong_result_count\"() : () -> i32"), "run FILE", 3, "results"),
    fault("kernel that cancels", Body("%c = tfrt.new.chain\n%r, %d = \"tfrt_test.cancel\"(%c) : (!tfrt.chain) -> (i32, !tfrt.chain)\n%s = \"tfrt_test.sum\"(%r) : (i32) -> i32"), "run FILE", 0, "'main' returned 0"),
    fault("endless recursion", Text(RECURSION), "run --max-depth 1000 FILE", 5, "call depth exceeds the limit of 1000"),
    fault("endless recursion, few bytes", Text(RECURSION), "run --max-memory 64KiB FILE", 5, "no memory"),
    fault("endless recursion, fixed allocator", Text(RECURSION), "run --allocator fixed:4096 FILE", 5, "However current capacity is only"),
    fault("endless recursion, few steps", Text(RECURSION), "run --max-steps 1000 FILE", 5, "limit of 1000 steps"),
    fault("endless loop, few steps", Text(LOOP), "run --max-steps 1000 FILE", 5, "limit of 1000 steps"),
    fault("endless loop, deadline", Text(LOOP), "run --deadline 100ms FILE", 4, "<<error: Deadline exceeded>>"),
    fault("endless loop, deadline, one thread", Text(LOOP), "run --queue single --deadline 100ms FILE", 4, "<<error: Deadline exceeded>>"),
    fault("endless kernel, deadline", Body("%c = tfrt.new.chain\n%d = \"tfrt_test.spin\"(%c) : (!tfrt.chain) -> !tfrt.chain\n%r = \"tfrt_test.get_thread_id\"(%d) : (!tfrt.chain) -> i32"), "run --deadline 100ms FILE", 4, "<<error: Deadline exceeded>>"),
    fault("no memory at all", Body("%r = tfrt.constant.i32 1"), "run --allocator fixed:33 FILE", 5, "no memory"),
    fault("leak", Text("func.func @f() {\n  \"tfrt_test.memory_leak_one_int32\"() : () -> ()\n  tfrt.return\n}"), "run --allocator leak-check FILE", 6, "Memory leak detected: "),
];

#[test]
fn each_fault_is_told_and_has_its_status() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
    fs::create_dir_all(&folder).unwrap();
    let wrong: Vec<String> = FAULTS
        .iter()
        .enumerate()
        .filter_map(|(index, fault)| fault.check(&folder.join(format!("fault{index}"))).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn closed_output_is_no_fault() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .arg("kernels")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_told() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .arg("kernels")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("No space left on device"), "{stderr}");
}

impl Fault {
    fn check(&self, path: &Path) -> Result<(), String> {
        self.make(path);
        let output = self.run(path)?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let told = stdout.contains(self.says) || stderr.contains(self.says);
        let panicked = stderr.contains("panicked at");
        if told && !panicked && output.status.code() == Some(self.status) {
            return Ok(());
        }
        Err(format!(
            "{}: expected status {} and '{}', found {}\n{stdout}{stderr}",
            self.name, self.status, self.says, output.status
        ))
    }

    fn make(&self, path: &Path) {
        let compiled = || {
            let text =
                "func.func @main() -> i32 {\n  %r = tfrt.constant.i32 1\n  tfrt.return %r : i32\n}";
            fs::write(path, text).unwrap();
            let bytes = path.with_extension("bef");
            let status = Command::new(env!("CARGO_BIN_EXE_tfrt"))
                .arg("compile")
                .args([path, Path::new("-o"), &bytes])
                .status();
            assert!(status.unwrap().success());
            fs::read(bytes).unwrap()
        };
        let bytes = match self.input {
            Missing => return,
            Bytes(bytes) => bytes.to_vec(),
            Text(text) => text.into(),
            Body(body) => {
                format!("func.func @main() -> i32 {{\n{body}\n  tfrt.return %r : i32\n}}\n").into()
            }
            Cut(len) => {
                let bytes = compiled();
                bytes[..len.min(bytes.len() - 1)].to_vec()
            }
            Changed(at) => {
                let mut bytes = compiled();
                bytes[at] ^= 0x10;
                bytes
            }
        };
        fs::write(path, bytes).unwrap();
    }

    fn run(&self, path: &Path) -> Result<Output, String> {
        let file = path.to_string_lossy();
        let words = self.line.split_whitespace();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .args(words.map(|word| word.replace("FILE", &file)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let until = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
                return Err(format!("{}: hangs", self.name));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(child.wait_with_output().unwrap())
    }
}

/// Runs the command with text on its standard input.
fn with_stdin(arguments: &[&str], text: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn program_from_standard_input_is_shown_in_messages() {
    let text = "func.func @main() -> i32 {\n  %r = \"tfrt_test.fail\"() : () -> i32\n  tfrt.return %r : i32\n}\n";
    let output = with_stdin(&["run", "-"], text);
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("-:2:8: error: runtime error: something bad happened\n"),
        "{stderr}"
    );
    assert!(stderr.contains("%r = \"tfrt_test.fail\"()"), "{stderr}");
}

#[test]
fn colours_follow_the_option() {
    let colored = |when: &str| {
        let output = with_stdin(&["check", "--color", when, "-"], "oops");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).contains('\x1b')
    };
    assert!(colored("always"));
    assert!(!colored("never"));
    assert!(!colored("auto"), "a pipe is no terminal");
}

#[test]
fn bytes_go_through_pipes() {
    let text =
        "func.func @main() -> i32 {\n  %r = tfrt.constant.i32 7\n  tfrt.return %r : i32\n}\n";
    let compiled = with_stdin(&["compile", "-", "-o", "-"], text).stdout;
    assert!(compiled.starts_with(&[0x0b, 0xef, 0]));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("piped");
    fs::write(&path, compiled).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(["run".as_ref(), path.as_os_str()])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&run.stdout);
    assert_eq!(stdout, "--- Running 'main':\n'main' returned 7\n");
}

#[test]
fn documents_are_one_object_each() {
    let example = |name: &str| PathBuf::from("../../examples").join(name);
    for (line, schema, status) in [
        (
            vec!["run".into(), "--json".into(), example("error.mlir")],
            "tfrt.run/1",
            3,
        ),
        (
            vec!["check".into(), "--json".into(), example("error.mlir")],
            "tfrt.check/1",
            0,
        ),
        (vec!["kernels".into(), "--json".into()], "tfrt.kernels/1", 0),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .args(&line)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{line:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["schema"], schema);
        if schema == "tfrt.run/1" {
            assert_eq!(document["functions"][0]["results"][1]["value"], 12);
            assert_eq!(
                document["functions"][0]["diagnostics"][0]["kernel"],
                "tfrt.div.i32"
            );
        }
    }
}
