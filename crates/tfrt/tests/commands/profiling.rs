//! `tfrt run --trace` and `--stats`: what is written of a run, read back by a decoder that shares no
//! code with the encoder.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value as Json;

#[path = "profiling/decoder.rs"]
pub mod decoder;

use decoder::{Kind, Trace};

const LATER: &str = "\
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  %two = \"tfrt_test.async_add.i32\"(%one, %one) : (i32, i32) -> i32
  %three = tfrt.add.i32 %two, %one
  %unused = tfrt.add.i32 %one, %one
  %four = tfrt.call @next(%three) : (i32) -> i32
  tfrt.return %four : i32
}
func.func @next(%x: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %y = tfrt.add.i32 %x, %one
  tfrt.return %y : i32
}
";

/// Returns the paths of a program that belongs to a test, and of a file beside it.
fn files(test: &str, text: &str) -> (PathBuf, PathBuf) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiling");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(format!("{test}.mlir"));
    fs::write(&program, text).unwrap();
    (program, folder.join(format!("{test}.pftrace")))
}

fn tfrt(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.args(words).output().unwrap()
}

/// Runs a program with `--trace`, and reads the trace.
fn trace(test: &str, text: &str, options: &[&str]) -> Trace {
    let (program, trace) = files(test, text);
    let paths = [
        "--trace",
        trace.to_str().unwrap(),
        program.to_str().unwrap(),
    ];
    let output = tfrt(&[&["run"], options, &paths].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let written = fs::read(&trace).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let (n_bytes, path) = (written.len(), trace.display());
    let expected =
        format!("tfrt: wrote {n_bytes} bytes to '{path}', for https://ui.perfetto.dev\n");
    assert_eq!(said, expected);
    Trace::read(&written)
}

#[test]
fn trace_has_kernels_by_thread_with_names_and_places() {
    for (test, queue) in [("names_single", "single"), ("names_multi", "multi:2")] {
        let trace = trace(test, LATER, &["--queue", queue, "--function=main"]);
        let mut names: Vec<String> = trace
            .slices("kernel")
            .map(|slice| {
                let at = slice.notes["at"].rsplit('/').next().unwrap_or_default();
                let line = at.split(':').nth(1).unwrap_or_default();
                assert_eq!(slice.source_line.to_string(), line);
                assert!(["main", "next"].contains(&slice.notes["function"].as_str()));
                format!("{} {line}", slice.name)
            })
            .collect();
        names.sort();
        let expected = [
            "tfrt.add.i32 11",
            "tfrt.add.i32 4",
            "tfrt.add.i32 5",
            "tfrt.call 6",
            "tfrt.constant.i32 10",
            "tfrt.constant.i32 2",
            "tfrt_test.async_add.i32 3",
        ];
        assert_eq!(names, expected, "{queue}");
        let threads: Vec<&str> = trace.threads.values().map(String::as_str).collect();
        assert!(threads.contains(&"main"), "{threads:?}");
    }
}

#[test]
fn slices_of_a_thread_lie_in_each_other() {
    let trace = trace("nesting", LATER, &["--queue", "multi:2"]);
    let mut open: std::collections::HashMap<u64, Vec<u64>> = std::collections::HashMap::new();
    for event in &trace.events {
        let stack = open.entry(event.track).or_default();
        match event.kind {
            Kind::Begin => {
                assert!(trace.threads.contains_key(&event.track));
                assert!(stack.last().is_none_or(|begin| *begin <= event.at_ns));
                stack.push(event.at_ns);
            }
            Kind::End => {
                let begin = stack.pop().expect("what ends has begun");
                assert!(begin <= event.at_ns);
            }
            Kind::Instant | Kind::Counter => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "what has begun ends");
}

#[test]
fn flow_goes_along_the_critical_path() {
    let trace = trace("flow", LATER, &["--queue", "single", "--function=main"]);
    let mut path: Vec<_> = trace
        .slices("kernel")
        .filter(|slice| slice.flow == 1)
        .collect();
    path.sort_by_key(|slice| slice.at_ns);
    let lines: Vec<u64> = path.iter().map(|slice| slice.source_line).collect();
    // Not the unused sum, nor the constant of the callee, which is there before its sum needs it.
    assert_eq!(lines.first(), Some(&2));
    assert_eq!(lines.last(), Some(&11));
    assert!(
        [2, 3, 4, 6].iter().all(|line| lines.contains(line)),
        "{lines:?}"
    );
    assert!(!lines.contains(&5), "{lines:?}");
}

#[test]
fn counters_are_sampled() {
    let trace = trace("counters", LATER, &[]);
    for name in ["live bytes", "tasks queued or running"] {
        let track = trace.counters.iter().find(|(_, found)| *found == name);
        let (track, _) = track.expect("the counter has a track");
        let samples = trace
            .events
            .iter()
            .filter(|event| event.kind == Kind::Counter && event.track == *track);
        assert!(samples.count() >= 2, "there is a first and a last sample");
    }
}

#[test]
fn trace_is_told_of_to_machines() {
    let (program, trace) = files("written", LATER);
    let paths = [trace.to_str().unwrap(), program.to_str().unwrap()];
    let output = tfrt(&[
        "run",
        "--message-format=json",
        "--trace",
        paths[0],
        paths[1],
    ]);
    let told: Json = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(told["schema"], "tfrt.written/1");
    assert_eq!(told["file"], paths[0]);
    assert_eq!(told["bytes"], fs::metadata(&trace).unwrap().len());
    assert_eq!(told["open_with"], "https://ui.perfetto.dev");
}

#[test]
fn trace_that_cannot_be_written_is_told() {
    let (program, _) = files("unwritable", LATER);
    let words = [
        "run",
        "--trace",
        "/nonexistent/trace",
        program.to_str().unwrap(),
    ];
    let output = tfrt(&words);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("tfrt: error: cannot write '/nonexistent/trace': "),
        "{said}"
    );
}

#[test]
fn statistics_are_told_on_standard_error() {
    let (program, _) = files("stats", LATER);
    let words = [
        "run",
        "--stats",
        "--queue=single",
        program.to_str().unwrap(),
    ];
    let output = tfrt(&words);
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.ends_with("'main' returned 4\n--- Not running 'next' because it has arguments.\n")
    );
    let said = String::from_utf8_lossy(&output.stderr);
    for part in [
        "from the first kernel to the last\n",
        "\nkernel ",
        "\ntfrt.add.i32 ",
        "stats.mlir:3:10 tfrt_test.async_add.i32 ",
        "\nmain ",
        "\nqueue: ",
        "\nmemory: ",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
}

#[test]
fn statistics_are_part_of_documents() {
    let (program, _) = files("document", LATER);
    let program = program.to_str().unwrap();
    let output = tfrt(&["run", "--json", "--stats", "--queue=multi:2", program]);
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    let of_run = document["stats"].clone();
    let output = tfrt(&[
        "run",
        "--message-format=json",
        "--stats",
        "--queue=multi:2",
        program,
    ]);
    let of_talk: Json = serde_json::from_slice(&output.stderr).unwrap();
    for stats in [of_run, of_talk] {
        assert_eq!(stats["schema"], "tfrt.stats/1");
        let kernels = stats["kernels"].as_array().unwrap();
        let adds = kernels
            .iter()
            .find(|kernel| kernel["name"] == "tfrt.add.i32")
            .unwrap();
        assert_eq!(adds["runs"], 3);
        let total = |name: &str| {
            kernels
                .iter()
                .filter_map(|kernel| kernel[name].as_f64())
                .sum::<f64>()
        };
        assert!((total("share") - 1.0).abs() < 1e-9);
        assert!(total("critical_ns") > 0.0);
        // A worker may come too late for the only task.
        assert!((2..=3).contains(&stats["threads"].as_array().unwrap().len()));
        assert_eq!(stats["lost_events"], 0);
        // What a sanitizer watches is the system's memory, which is not counted.
        let is_counted = !cfg!(tfrt_no_free_lists);
        assert_eq!(
            stats["memory"]["allocations"].as_u64().unwrap() > 0,
            is_counted
        );
    }
}
