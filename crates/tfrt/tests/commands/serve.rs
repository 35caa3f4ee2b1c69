//! `tfrt serve`: which models are served, and which options they are refused with.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the command in a folder; returns its status, and what it says on both streams.
fn tfrt(folder: &Path, line: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    let output = command.current_dir(folder).args(line).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn options_of_compiling_are_refused_with_what_was_compiled_before() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("models/other/1")).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    fs::copy(examples.join("layer.onnx"), folder.join("layer.onnx")).unwrap();
    let (status, told) = tfrt(&folder, &["compile", "layer.onnx", "-o", "layer.bef"]);
    assert_eq!(status, Some(0), "{told}");
    fs::copy(
        folder.join("layer.bef"),
        folder.join("models/other/1/model.bef"),
    )
    .unwrap();
    for (option, value) in [("--precision", "f32"), ("--precision", "bf16")] {
        let refused = format!(
            "{option} is for models that are compiled now, but 'layer.bef' was compiled before"
        );
        let named = ["--name", "layer=layer.bef"];
        for model in [&["layer.bef"][..], &named] {
            let line = [&["serve", "--check", option, value], model].concat();
            let (status, told) = tfrt(&folder, &line);
            assert_eq!(status, Some(2), "{told}");
            assert!(told.contains(&refused), "{told}");
        }
        let run = ["run", "layer.bef", "--random", option, value];
        let (status, told) = tfrt(&folder, &run);
        assert_eq!(status, Some(2), "{told}");
        assert!(told.contains(&refused), "{told}");
        // In a folder there may be models of both kinds.
        let line = ["serve", "--check", option, value, "--repository", "models"];
        let (status, told) = tfrt(&folder, &[&line[..], &["layer.onnx"]].concat());
        assert_eq!(status, Some(1), "{told}");
        let refused = refused.replace("layer.bef", "model.bef");
        assert!(told.contains(&format!("other 1: {refused}")), "{told}");
        assert!(told.contains("layer 1: ready"), "{told}");
    }
    let (status, told) = tfrt(&folder, &["serve", "--check", "layer.bef"]);
    assert_eq!((status, told.trim()), (Some(0), "layer 1: ready"));
}

#[cfg(feature = "otel")]
fn traced(more: &[&str], variables: &[(&str, &str)]) -> Command {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    let served = ["serve", "layer.onnx", "--listen", "127.0.0.1:0"];
    command.current_dir(&examples).args(served).args(more);
    command.envs(variables.iter().copied());
    command
}

#[cfg(feature = "otel")]
#[test]
fn collectors_that_spans_cannot_be_sent_to_are_refused() {
    let output = traced(&["--otlp", "https://127.0.0.1:4318"], &[]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let refused = String::from_utf8(output.stderr).unwrap();
    let message = "the collector 'https://127.0.0.1:4318/v1/traces': spans are sent as they are, without encryption";
    assert!(refused.contains(message), "{refused}");
}

#[cfg(feature = "otel")]
#[test]
fn environments_that_spans_cannot_be_sent_by_are_warnings() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let protocol = "OTEL_EXPORTER_OTLP_PROTOCOL";
    let cases = [
        (
            vec![(endpoint, "https://127.0.0.1:4318")],
            "OTEL_EXPORTER_OTLP_ENDPOINT 'https://127.0.0.1:4318/v1/traces': spans are sent as they are",
        ),
        (
            vec![(endpoint, "http://127.0.0.1:4317"), (protocol, "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL: spans are exported by http/protobuf alone, found 'grpc'",
        ),
    ];
    for (variables, reason) in cases {
        let mut command = traced(&[], &variables);
        let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut line = || told.next().unwrap().unwrap();
        let (warned, ready) = (line(), line());
        server.kill().unwrap();
        server.wait().unwrap();
        let expected = format!("warning: no spans are sent: {reason}");
        assert!(warned.starts_with(&expected), "{warned}");
        assert!(ready.starts_with("note: serving layer at"), "{ready}");
    }
}
