//! The streams of the command: pipes that close, full disks, colours, forms of messages, documents.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
    for line in ["kernels", "--help", "--version", "run --help"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .args(line.split(' '))
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let expected = "tfrt: error: cannot write to standard output: No space left on device\n";
        assert_eq!(stderr, expected, "{line}");
    }
}

#[test]
fn help_that_nobody_reads_is_no_fault() {
    for word in ["--help", "--version"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .arg(word)
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
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
    // A command that does not read it may have ended.
    let _ = stdin.write_all(text.as_bytes());
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

#[test]
fn document_of_a_run_is_all_of_standard_output() {
    let text =
        "func.func @main() -> i32 {\n  %x = tfrt.constant.i32 7\n  tfrt.return %x : i32\n}\n";
    let leaks = "func.func @main() {\n  \"tfrt_test.memory_leak_one_int32\"() : () -> ()\n  \
                 tfrt.return\n}\n";
    for (options, text, status, told) in [
        ("--trace-stdout", text, 0, "Scope:Bef Executor\n"),
        ("--trace-stdout --trace-level debug", text, 0, "End Scope\n"),
        ("--allocator profiled", text, 0, "HostAllocator profile:\n"),
        ("--allocator leak-check", text, 0, ""),
        ("--allocator leak-check", leaks, 6, "Memory leak detected: "),
        ("--allocator fixed:1MiB", text, 0, ""),
    ] {
        let options = options.split(' ');
        let line: Vec<&str> = ["run", "-", "--json"].into_iter().chain(options).collect();
        let output = with_stdin(&line, text);
        assert_eq!(output.status.code(), Some(status), "{line:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["exit_status"], status, "{line:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(told), "{line:?}: {stderr}");
    }
}

#[test]
fn rejected_input_gets_the_object_of_the_command() {
    let undeclared = "func.func @main() -> i32 {\n  tfrt.return %x : i32\n}\n";
    let unloadable = "func.func @main() {\n  \"no.such\"() : () -> ()\n  tfrt.return\n}\n";
    for (line, text, code, place) in [
        ("run -", undeclared, "TF0201", Some(("-", 2))),
        ("run -", unloadable, "TF0701", Some(("-", 2))),
        ("run nowhere.mlir", "", "TF0001", None),
        ("run - --function mian", "", "TF0005", None),
        ("dump -", undeclared, "TF0201", Some(("-", 2))),
        ("dump nowhere.bef", "", "TF0001", None),
        ("diff - nowhere.bef", "", "TF0001", None),
        ("diff /dev/null -", undeclared, "TF0201", Some(("-", 2))),
    ] {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let output = with_stdin(&words, text);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["schema"], format!("tfrt.{}/1", words[0]));
        let is_run = words[0] == "run";
        assert_eq!(document.get("exit_status"), is_run.then_some(&1.into()));
        let file = (words[0] != "diff").then(|| words[1].into());
        assert_eq!(document.get("file"), file.as_ref());
        let problem = &document["problems"][0];
        assert_eq!(problem["severity"], "error");
        assert_eq!(problem["code"], code, "{line}");
        if let Some((file, line)) = place {
            assert_eq!(problem["file"], file);
            assert_eq!(problem["line"], line);
        }
        let message = problem["message"].as_str().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(message), "{line}: {stderr}");
    }
    let senseless = with_stdin(&["run", "-", "--json", "--arg", "1"], "");
    assert_eq!(senseless.status.code(), Some(2));
    assert!(senseless.stdout.is_empty());
}

#[test]
fn messages_are_first_lines_or_objects_if_asked() {
    let text = "func.func @main() -> i32 {\n  %y = tfrt.constant.i32 1\n  \
                %x = tfrt.add.i32 %y, %z\n  tfrt.return %x : i32\n}\n";
    let told = |format: &str| {
        let output = with_stdin(&["check", "--message-format", format, "-"], text);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let first = "-:3:25: error: use of undeclared SSA value name [TF0201]\n";
    assert_eq!(told("short"), first);
    let full = told("full");
    assert!(
        full.starts_with(first) && full.len() > first.len(),
        "{full}"
    );
    let lines = told("json");
    let message: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(lines.matches('\n').count(), 1);
    assert_eq!(message["severity"], "error");
    assert_eq!(message["code"], "TF0201");
    assert_eq!(message["message"], "use of undeclared SSA value name");
    assert_eq!(message["file"], "-");
    assert_eq!(
        (&message["line"], &message["column"]),
        (&3.into(), &25.into())
    );
    assert_eq!(
        (&message["end_line"], &message["end_column"]),
        (&3.into(), &27.into())
    );
    assert_eq!(message["rendered"], full);
    assert_eq!(
        message["help"][0]["message"],
        "nothing in this region defines %z"
    );
}

#[test]
fn notes_have_places_of_their_own_in_objects() {
    let text = "func.func @f() {\n  tfrt.return\n}\n".repeat(2);
    let output = with_stdin(&["check", "--message-format=json", "-"], &text);
    let message: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(message["line"], 4);
    assert_eq!(message["notes"][0]["line"], 1);
    assert_eq!(message["notes"][0]["file"], "-");
}

#[test]
fn every_kind_of_problem_can_be_an_object() {
    let fails = "func.func @main() -> i32 {\n  %x = \"tfrt_test.fail\"() : () -> i32\n  \
                 tfrt.return %x : i32\n}\n";
    for (line, code) in [
        (vec!["run", "nowhere.mlir"], "TF0001".into()),
        (vec!["run", "--function", "mian", "-"], "TF0005".into()),
        (vec!["run", "-"], "Unknown".into()),
        (vec!["explain", "TF9999"], serde_json::Value::Null),
        (
            vec!["compile", "-", "-o", "/nowhere/x.bef"],
            serde_json::Value::Null,
        ),
    ] {
        let line = [&line[..], &["--message-format", "json"]].concat();
        let output = with_stdin(&line, fails);
        let message: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(message["code"], code, "{line:?}");
        assert!(message["rendered"].as_str().unwrap().contains("error: "));
    }
}

#[test]
fn codes_are_explained_and_listed() {
    let explain = |code: &str| with_stdin(&["explain", code], "");
    let text = explain("TF0103").stdout;
    assert!(text.starts_with(b"# TF0103: "));
    for same in ["tf0103", "0103", "103", "[TF0103]"] {
        assert_eq!(explain(same).stdout, text);
    }
    let unknown = explain("TF0193");
    assert_eq!(unknown.status.code(), Some(1));
    let said = String::from_utf8(unknown.stderr).unwrap();
    let expected = "tfrt: error: no diagnostic has the code 'TF0193'\nhelp: there is TF01";
    assert!(said.starts_with(expected), "{said}");
    for status in ["InvalidArgument", "[invalidargument]"] {
        let explained = explain(status);
        assert_eq!(explained.status.code(), Some(0));
        let said = String::from_utf8(explained.stdout).unwrap();
        let expected = "InvalidArgument: a status of errors at run time: a kernel was given";
        assert!(said.starts_with(expected), "{said}");
    }
    let list = with_stdin(&["explain"], "").stdout;
    assert_eq!(list, with_stdin(&["explain", "--list"], "").stdout);
    let lines = String::from_utf8(list).unwrap();
    assert_eq!(lines.lines().count(), tfrt::codes::all().len());
}

#[test]
fn command_line_that_makes_no_sense_is_told_in_the_form_asked_for() {
    let words = ["--message-format", "json", "run", "a.mlir", "--alocator=x"];
    let output = with_stdin(&words, "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).expect("one line of JSON");
    assert_eq!(said["severity"], "error");
    assert_eq!(said["message"], "unexpected argument '--alocator' found");
    let help = &said["help"][0]["message"];
    assert_eq!(help, "a similar argument exists: '--allocator'");
    let rendered = said["rendered"].as_str().unwrap();
    assert!(rendered.contains("Usage: tfrt run"), "{rendered}");
    // Behind `--` there are files only.
    let output = with_stdin(&["run", "--alocator", "--", "--message-format=json"], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: unexpected argument"), "{said}");
}
