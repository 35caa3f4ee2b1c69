//! `tfrt run --profile`: what the page says of a run, and that a browser shows it.
//!
//! The document in the page is read as JSON. The page itself is opened in Chromium, without a window;
//! where there is none, that part is skipped, and says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;

#[path = "report/browser.rs"]
mod browser;
#[path = "report/document.rs"]
mod document;

/// Calls, a loop, recursion, a value that comes later, effects.
const PROGRAM: &str = "\
func.func @main() -> i32 {
  %start = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %two = \"tfrt_test.async_add.i32\"(%one, %one) : (i32, i32) -> i32
  %six = tfrt.constant.i32 6
  %fib = tfrt.call @fib(%six) : (i32) -> i32
  %sum = tfrt.add.i32 %fib, %two
  %times = tfrt.constant.i32 3
  %looped = tfrt.repeat.i32 %times, %sum : i32 {
    %more = tfrt.add.i32 %sum, %sum
    tfrt.return %more : i32
  }
  %done = tfrt.print.i32 %looped, %start
  tfrt.return %looped : i32
}
func.func @other() -> i32 {
  %three = tfrt.constant.i32 3
  tfrt.return %three : i32
}
func.func @fib(%n: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %small = \"tfrt.lessequal.i32\"(%n, %one) : (i32, i32) -> i1
  %result = tfrt.cond %small @itself @sum (%n) : (i32) -> i32
  tfrt.return %result : i32
}
func.func @itself(%n: i32) -> i32 {
  tfrt.return %n : i32
}
func.func @sum(%n: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %a = \"tfrt.minus.i32\"(%n, %one) : (i32, i32) -> i32
  %b = \"tfrt.minus.i32\"(%a, %one) : (i32, i32) -> i32
  %x = tfrt.call @fib(%a) : (i32) -> i32
  %y = tfrt.call @fib(%b) : (i32) -> i32
  %sum = tfrt.add.i32 %x, %y
  tfrt.return %sum : i32
}
";

/// Returns a file of a test, in a folder of the tests.
fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn tfrt(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.args(words).output().unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A run with a page.
struct Profiled {
    output: Output,
    page: PathBuf,
    html: String,
    document: Json,
}

impl Profiled {
    /// Returns the things that stand in a list of objects, by one of their fields.
    fn all(&self, list: &str, field: &str) -> Vec<String> {
        let things = self.document[list].as_array().unwrap().iter();
        things
            .map(|thing| thing[field].as_str().unwrap().to_owned())
            .collect()
    }

    fn column(&self, table: &str, column: &str) -> Vec<u64> {
        let numbers = self.document[table][column].as_array().unwrap().iter();
        numbers.map(|number| number.as_u64().unwrap()).collect()
    }
}

/// Runs a program with `--profile`.
fn profile(test: &str, text: &str, options: &[&str]) -> Profiled {
    let program = file(&format!("{test}.mlir"));
    fs::write(&program, text).unwrap();
    profile_file(test, &program, options)
}

fn profile_file(test: &str, program: &Path, options: &[&str]) -> Profiled {
    let page = file(&format!("{test}.html"));
    let last = ["--profile", path(&page), path(program)];
    let output = tfrt(&[&["run"], options, &last].concat());
    let html = fs::read_to_string(&page).unwrap();
    let (_, behind) = html.split_once("id=\"data\">").unwrap();
    let (document, _) = behind.split_once("</script>").unwrap();
    Profiled {
        document: serde_json::from_str(document).unwrap(),
        output,
        page,
        html,
    }
}
