//! Whoever reads what the command prints may close the pipe: what is said then is lost, and nothing else.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a command whose reader is gone before it begins; gives its status and what it says beside.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn status_and_errors_are_what_they_would_have_been() {
    let (status, said) = unread(&["run", "examples/error.mlir"]);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("Divide by zero"), "{said}");
    let (status, said) = unread(&["run", "--json", "examples/error.mlir"]);
    assert_eq!(status, Some(3), "{said}");
    let files = ["examples/fizzbuzz.mlir", "examples/fib.mlir"];
    let (status, said) = unread(&[&["check"], &files[..], &["Cargo.toml"]].concat());
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(unread(&[&["check"], &files[..]].concat()).0, Some(0));
    assert_eq!(unread(&["diff", files[0], files[1]]).0, Some(1));
    assert_eq!(unread(&["run", files[0]]), (Some(0), String::new()));
}
