//! The commands that look into programs, run as people run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = "\
func.func @main() -> i32 {
  %a = tfrt.constant.i32 42
  %b = tfrt.constant.i32 1
  %c = tfrt.add.i32 %a, %b
  tfrt.return %c : i32
}
";

/// A folder of its own for each test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("inspect-{name}"));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn tfrt(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
        command
            .args(arguments.split_whitespace())
            .current_dir(&self.0);
        command.output().unwrap()
    }

    /// Runs a command that must end with a status, and returns what it printed.
    fn check(&self, arguments: &str, status: i32) -> String {
        let output = self.tfrt(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn decompiled_text_compiles_to_the_same_bytes() {
    let folder = Folder::new("decompile");
    folder.write("a.mlir", PROGRAM);
    folder.check("compile a.mlir", 0);
    folder.check("decompile a.bef -o b.mlir", 0);
    folder.check("compile b.mlir", 0);
    let [before, after] = ["a.bef", "b.bef"].map(|name| fs::read(folder.0.join(name)).unwrap());
    assert!(before == after);
    let plain = folder.check("decompile a.bef --no-locations", 0);
    assert!(plain.contains("%2 = tfrt.add.i32 %0, %1\n"), "{plain}");
    let generic = folder.check("decompile a.mlir --generic", 0);
    assert!(generic.contains("\"tfrt.add.i32\"(%0, %1)"), "{generic}");
}

#[test]
fn stripped_file_is_decompiled_with_a_warning() {
    let folder = Folder::new("stripped");
    folder.write("a.mlir", PROGRAM);
    folder.check("compile --strip a.mlir", 0);
    let output = folder.tfrt("decompile a.bef");
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    let expected = "a.bef: warning: Missing AttributeTypes, AttributeNames or RegisterTypes \
                    sections. [TF0801]\n";
    assert_eq!(told, expected);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("{attr0 = -559038737 : i32}"), "{text}");
}

#[test]
fn parts_of_a_text_are_decompiled_one_by_one() {
    let folder = Folder::new("split");
    folder.write("a.mlir", &format!("{PROGRAM}// -----\n{PROGRAM}"));
    let text = folder.check("decompile --split-input-file a.mlir", 0);
    assert_eq!(text.matches("func.func @main").count(), 2);
    assert_eq!(text.matches("// -----\n").count(), 1);
}

#[test]
fn dump_accounts_for_every_byte() {
    let folder = Folder::new("dump");
    folder.write("a.mlir", PROGRAM);
    let text = folder.check("dump a.mlir", 0);
    assert!(text.starts_with("00000000  0b ef"), "{text}");
    assert!(text.contains("tfrt.constant.i32"), "{text}");
    let document = folder.check("dump --json a.mlir", 0);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "tfrt.dump/1");
    let mut end = 0;
    for piece in document["pieces"].as_array().unwrap() {
        assert_eq!(piece["start"].as_u64(), Some(end));
        end = piece["end"].as_u64().unwrap();
    }
    assert_eq!(document["len_bytes"].as_u64(), Some(end));
}

#[test]
fn programs_are_the_same_whatever_their_values_are_called() {
    let folder = Folder::new("same");
    folder.write("a.mlir", PROGRAM);
    let other = PROGRAM.replace('%', "%other_").replace('\n', "\n\n");
    folder.write("b.mlir", &other);
    folder.check("compile b.mlir", 0);
    assert_eq!(folder.check("diff a.mlir b.mlir", 0), "");
    assert_eq!(folder.check("diff a.mlir b.bef", 0), "");
}

#[test]
fn differences_are_told_where_they_are() {
    let folder = Folder::new("differs");
    folder.write("a.mlir", PROGRAM);
    let check = |from: &str, to: &str, expected: &str| {
        folder.write("b.mlir", &PROGRAM.replace(from, to));
        assert_eq!(folder.check("diff a.mlir b.mlir", 1), expected);
        let document = folder.check("diff --json a.mlir b.mlir", 1);
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["same"], false);
    };
    check(
        "i32 42",
        "i32 43",
        "@main tfrt.constant.i32 1: has another attribute\n  - value = 42 : i32\n  \
         + value = 43 : i32\n",
    );
    check(
        "%a, %b",
        "%b, %b",
        "@main tfrt.add.i32 3: reads another value\n  \
         - operand 0 is result 0 of tfrt.constant.i32 (i32) value = 42 : i32\n  \
         + operand 0 is result 0 of tfrt.constant.i32 (i32) value = 1 : i32\n",
    );
    check(
        "  %b =",
        "  %z = tfrt.new.chain\n  %b =",
        "@main: has one more operation\n  + tfrt.new.chain (!tfrt.chain)\n",
    );
    check("@main", "@other", "@main: is gone\n@other: is new\n");
}

#[test]
fn stripped_file_differs_in_nothing_that_it_lacks() {
    let folder = Folder::new("differs-stripped");
    let program = "\
func.func @count(%from: i32, %c: !tfrt.chain) -> (i32, i64) {
  %a = tfrt.constant.i32 42
  %b = tfrt.call @double(%a) : (i32) -> i32
  %t = tfrt.constant.i1 true
  %r = tfrt.if %t, %b, %from : (i32, i32) -> i32 {
    %sum = tfrt.add.i32 %b, %from
    tfrt.return %sum : i32
  } else {
    tfrt.return %b : i32
  }
  %l = tfrt.constant.i64 1
  tfrt.return %r, %l : i32, i64
}
func.func @double(%x: i32) -> i32 {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
";
    folder.write("a.mlir", program);
    folder.check("compile a.mlir", 0);
    folder.check("compile --strip a.mlir -o stripped.bef", 0);
    for line in [
        "diff a.bef stripped.bef",
        "diff stripped.bef a.mlir",
        "diff stripped.bef stripped.bef",
    ] {
        let output = folder.tfrt(line);
        let told = String::from_utf8(output.stderr).unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, "", "{line}");
        assert!(
            told.starts_with("stripped.bef: warning: this file is stripped, so "),
            "{told}"
        );
        let n_stripped = line.matches("stripped").count();
        assert_eq!(told.matches("warning: ").count(), n_stripped, "{told}");
        assert_eq!(output.status.code(), Some(0), "{line}");
    }
    let document = folder.check("diff --json a.bef stripped.bef", 0);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["not_compared"][0], "attributes");
    // What it has is compared.
    folder.write(
        "b.mlir",
        &program.replace("add.i32 %b, %from", "add.i32 %b, %b"),
    );
    assert_eq!(
        folder.check("diff stripped.bef b.mlir", 1),
        "@count tfrt.if 4 region 0 tfrt.add.i32 1: reads another value\n  \
         - operand 1 is argument 1\n  + operand 1 is argument 0\n"
    );
}

#[test]
fn kernels_are_listed_with_the_names_of_what_they_take_and_give() {
    let folder = Folder::new("kernels");
    let listed = folder.check("kernels tfrt.div.i*", 0);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "tfrt.div.i32(lhs: i32, rhs: i32) -> (quotient: i32, remainder: i32)",
            "    The quotient, rounded towards zero, and the remainder"
        ]
    );
    assert_eq!(lines.len(), 4);
}

#[test]
fn kernel_of_a_whole_name_is_shown_whole() {
    let folder = Folder::new("kernel");
    let shown = folder.check("kernels tfrt_test.sync_sum", 0);
    assert!(shown.contains("- Effects: none.\n"), "{shown}");
    assert!(!shown.contains("sync_sum2"), "{shown}");
    assert!(!shown.contains("```"), "{shown}");
    // So is an operation that has no kernel.
    let shown = folder.check("kernels tfrt.return", 0);
    assert!(shown.contains("has no kernel"), "{shown}");
    // So is a row, whose name is in that of its kernel.
    let shown = folder.check("kernels graph.softmax", 0);
    let signature = "graph.softmax(x: tensor of T) {axis: integer = -1, log: integer = 0} -> (y: tensor of T)\n";
    assert!(shown.starts_with(signature), "{shown}");
    assert!(
        shown.contains("- `axis` (`integer`, `-1` if absent)"),
        "{shown}"
    );
    // And one of the core runtime, which has none under its name.
    let shown = folder.check("kernels tf.MatMul", 0);
    assert!(shown.starts_with("tf.MatMul\n\nThe product"), "{shown}");
    assert!(shown.contains("docs/ops.md"), "{shown}");
    folder.check("kernels tfrt.no_such", 1);
    let all = folder.check("kernels --long", 0);
    assert!(all.len() > 50_000);
}

#[test]
fn kernels_as_json_say_what_the_tables_say() {
    let folder = Folder::new("kernels-json");
    let text = folder.check("kernels tfrt_test.atomic.get.i32 --json", 0);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kernel = &document["kernels"][0];
    assert_eq!(
        kernel["signature"],
        "(!test.atomic.i32) -> (i32, !tfrt.chain)"
    );
    assert_eq!(kernel["operand_names"][0], "counter");
    assert_eq!(kernel["effects"]["reads"][0], 0);
    assert_eq!(kernel["completion"], "synchronous");
}

#[test]
fn compiled_files_that_lost_all_their_bytes_are_no_programs() {
    let folder = Folder::new("lost");
    for bytes in ["", "\u{b}"] {
        folder.write("a.bef", bytes);
        for command in ["run", "run --mmap", "check", "bench", "decompile"] {
            let output = folder.tfrt(&format!("{command} a.bef"));
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command}: {message}");
            assert!(message.contains("[TF06"), "{command}: {message}");
        }
    }
}
