//! Ctrl-C before, in and after a call, and a deadline that a kernel does not heed: how the command ends, and that it
//! leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// The longest time that any test may take, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(60);

const MODEL: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
      attributes {model.input_names = ["x"], model.output_names = ["one", "two"], model.input_dims = [[3 : i64]],
                  model.output_dims = [[3 : i64], [3 : i64]]} {
    %y = "onnx.Relu"(%x) : (tensor<3xf32>) -> tensor<3xf32>
    %z = "onnx.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
    func.return %y, %z : tensor<3xf32>, tensor<3xf32>
  }
}
"#;

/// Returns a program whose only kernel prints more than a pipe takes, so that it waits for a reader.
fn printer() -> String {
    let text = "x".repeat(1 << 20);
    format!(
        "func.func @main() -> !tfrt.chain {{\n  \
           %s = \"tfrt_test.get_string\"() {{value = \"{text}\"}} : () -> !tfrt.string\n  \
           %c = \"tfrt_test.print_string\"(%s) : (!tfrt.string) -> !tfrt.chain\n  \
           tfrt.return %c : !tfrt.chain\n}}\n"
    )
}

/// A folder with a program, gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, program: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tfrt-ctrl-c-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("program.mlir"), program).unwrap();
        Folder(path)
    }

    fn start(&self, line: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .args(line.split(' '))
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.unwrap().success());
}

/// Returns whether a process has a handler for Ctrl-C.
fn listens(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    u64::from_str_radix(caught.unwrap().trim(), 16).unwrap() & 1 << 1 != 0
}

/// Waits for the end without reading standard output meanwhile. Returns the status and both streams.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(1));
    }
    let status = child.wait().unwrap().code();
    let text = |stream: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        stream.unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let stdout = text(child.stdout.as_mut().map(|stream| stream as &mut dyn Read));
    let stderr = text(child.stderr.as_mut().map(|stream| stream as &mut dyn Read));
    (status, stdout, stderr)
}

#[test]
fn ctrl_c_before_a_call_ends_with_a_document() {
    let folder = Folder::new("before", "");
    // It waits for a program that does not come.
    let child = folder.start("run - --json");
    wait_until("it listens", || listens(&child));
    interrupt(&child);
    let (status, stdout, stderr) = end(child);
    assert_eq!(status, Some(130), "{stderr}");
    assert!(
        stderr.contains("interrupted before anything was called"),
        "{stderr}"
    );
    let document: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["schema"], "tfrt.run/1");
    assert_eq!(document["exit_status"], 130);
}

#[test]
fn ctrl_c_after_the_call_ends_without_files() {
    let folder = Folder::new("after", MODEL);
    let made = Command::new("mkfifo")
        .arg(folder.0.join("pipe.npy"))
        .status();
    assert!(made.unwrap().success());
    let before = folder.names();
    let line =
        "run program.mlir --random --profile page.html --output-dir new --output two=pipe.npy";
    let child = folder.start(line);
    // The page is the last that is written beside its place; then it waits for a reader of the pipe.
    let is_page = |name: &String| name.starts_with(".page.html.");
    let size = |name: &String| fs::metadata(folder.0.join(name)).map_or(0, |facts| facts.len());
    wait_until("it writes", || {
        folder
            .names()
            .iter()
            .any(|name| is_page(name) && size(name) > 0)
    });
    interrupt(&child);
    let (status, _, stderr) = end(child);
    assert_eq!(status, Some(130), "{stderr}");
    assert_eq!(folder.names(), before);
}

#[test]
fn second_ctrl_c_ends_what_does_not_stop() {
    let folder = Folder::new("second", &printer());
    let mut child = folder.start("run program.mlir --profile page.html");
    let mut first = [0; 64];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    interrupt(&child);
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    assert!(
        said.contains("another Ctrl-C ends the command at once"),
        "{said}"
    );
    assert_eq!(child.try_wait().unwrap(), None);
    interrupt(&child);
    child.stderr = Some(stderr.into_inner());
    assert_eq!(end(child).0, Some(130));
    assert_eq!(folder.names(), ["program.mlir"]);
}

#[test]
fn deadline_ends_a_kernel_that_waits_for_a_reader() {
    let folder = Folder::new("deadline", &printer());
    for limit in ["", " --max-steps 1000000"] {
        let line = "run program.mlir --deadline 200ms --profile page.html --trace run.pftrace";
        let (status, _, stderr) = end(folder.start(&format!("{line}{limit}")));
        assert_eq!(status, Some(4), "{stderr}");
        let expected = "work that did not stop at the deadline of 200ms";
        assert!(stderr.contains(expected), "{stderr}");
        assert_eq!(folder.names(), ["program.mlir"]);
    }
}

#[test]
fn deadline_is_not_for_what_is_written_after_the_call() {
    let folder = Folder::new("written", MODEL);
    let made = Command::new("mkfifo")
        .arg(folder.0.join("pipe.npy"))
        .status();
    assert!(made.unwrap().success());
    let line =
        "run program.mlir --random --deadline 10ms --output one=one.npy --output two=pipe.npy";
    let mut child = folder.start(line);
    let is_beside = |name: &String| name.starts_with(".one.npy.");
    wait_until("it writes", || folder.names().iter().any(is_beside));
    // Longer than twice the deadline, and than the time that there is at least.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(10));
    }
    assert!(
        fs::read(folder.0.join("pipe.npy"))
            .unwrap()
            .starts_with(b"\x93NUMPY")
    );
    let (status, _, stderr) = end(child);
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(folder.names(), ["one.npy", "pipe.npy", "program.mlir"]);
}
