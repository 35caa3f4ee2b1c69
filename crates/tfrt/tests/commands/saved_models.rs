//! SavedModels as directories: unknown operations are listed, damage is told with its place, tags choose a graph.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../../import/tests/library/saved_model/files.rs"]
#[allow(dead_code, reason = "the importer's tests have more of them")]
mod files;
#[path = "../../../import/tests/library/wire.rs"]
#[allow(dead_code, reason = "the importer's tests have more of them")]
mod wire;

use files::{FLOAT, Files, KEY, SHARD, entry, model_file, node, part, signature, table, ty};
use wire::Wire;

/// Writes a directory of this test's own, and returns its path.
fn folder(name: &str, files: &Files) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("saved_models")
        .join(name);
    let _ = fs::remove_dir_all(&path);
    for (file, bytes) in files {
        let path = path.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    path
}

/// Runs the command in the folder of directories; returns its status, and what it says on both streams.
fn tfrt(line: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.current_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved_models"));
    let output = command.args(line).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn unknown_operations_of_a_directory_are_listed_with_their_places() {
    let mut files = files::files();
    let nodes = vec![
        node("value", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
        node("first", "Mystery", &["a"], &[("T", ty(FLOAT))]),
        node("second", "Mystery", &["first:y:0"], &[("T", ty(FLOAT))]),
        node(
            "third",
            "Riddle",
            &["second:y:0", "value:value:0"],
            &[("T", ty(FLOAT))],
        ),
        node("out", "AddV2", &["third:y:0", "a"], &[("T", ty(FLOAT))]),
    ];
    files.insert("saved_model.pb", model_file(nodes));
    folder("unknown", &files);
    let (status, told) = tfrt(&["check", "unknown"]);
    assert_eq!(status, Some(1), "{told}");
    for part in [
        "unknown: rejected",
        "Mystery",
        "2 nodes",
        "called/c/first",
        "called/c/second",
        "Riddle",
        "called/c/third",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    let (status, told) = tfrt(&["run", "unknown", "--random"]);
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("Mystery") && told.contains("Riddle"),
        "{told}"
    );
}

#[test]
fn damaged_directories_are_refused_by_check_and_by_run() {
    type Change = fn(&mut Files);
    let cases: [(&str, Change, &str); 8] = [
        (
            "flipped",
            |files| files.get_mut(SHARD).unwrap()[6] ^= 1,
            "tensor 'variables/0/value' of the checkpoint: has a wrong checksum: the file is damaged",
        ),
        (
            "cut",
            |files| files.get_mut(SHARD).unwrap().truncate(8),
            "takes 8 bytes from byte 4 of 'variables/variables.data-00000-of-00001', which has 8",
        ),
        (
            "without_shard",
            |files| drop(files.remove(SHARD)),
            "variables/variables.data-00000-of-00001",
        ),
        (
            "without_index",
            |files| drop(files.remove("variables/variables.index")),
            "variables/variables.index",
        ),
        (
            "flipped_index",
            |files| files.get_mut("variables/variables.index").unwrap()[7] ^= 1,
            "has a block at byte 0 whose checksum is wrong",
        ),
        (
            "overlapping",
            |files| {
                let index = table(&[
                    (b"", Wire::new().int(1, 1).0),
                    (b"another", part(&[1], 8)),
                    (KEY.as_bytes(), part(&[2], 4)),
                ]);
                files.insert("variables/variables.index", index);
            },
            "puts tensor 'another' at byte 8 of shard 0, where tensor 'variables/0/value' has bytes 4 to 12",
        ),
        (
            "short",
            |files| {
                let index = table(&[
                    (b"", Wire::new().int(1, 1).0),
                    (KEY.as_bytes(), Wire(part(&[1], 4)).int(5, 8).0),
                ]);
                files.insert("variables/variables.index", index);
            },
            "has 8 bytes, expected 4 for 1 of type float",
        ),
        (
            "cut_graph",
            |files| {
                let graph = files.get_mut("saved_model.pb").unwrap();
                graph.truncate(graph.len() / 2);
            },
            "error: ",
        ),
    ];
    for (name, change, expected) in cases {
        let mut files = files::files();
        change(&mut files);
        folder(name, &files);
        for line in [&["check", name][..], &["run", name, "--random"]] {
            let (status, told) = tfrt(line);
            assert_eq!(status, Some(1), "{name}: {told}");
            assert!(
                told.contains(expected) && !told.contains("panicked"),
                "{name}: {told}"
            );
            assert_eq!(told.matches("error: ").count(), 1, "{name}: {told}");
        }
    }
}

#[test]
fn tags_choose_the_graph_of_a_directory() {
    let graph = |tags: &[&str], op: &str| {
        let nodes = [
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("called", op, &["given"], &[]),
        ];
        Wire::new()
            .message(1, Wire::new().texts(4, tags))
            .message(2, Wire::new().messages(1, nodes))
            .message(5, entry("serving_default", signature("called:0")))
    };
    let graphs = [graph(&["serve"], "Abs"), graph(&["train", "gpu"], "Neg")];
    let bytes = Wire::new().int(1, 1).messages(2, graphs).0;
    let path = folder("tagged", &Files::from([("saved_model.pb", bytes)]));
    let input = path.join("x.json");
    fs::write(&input, "[[-2.0, 3.0]]").unwrap();
    let run = |more: &[&str]| {
        let line = [&["run", "tagged", "--input", "tagged/x.json"][..], more].concat();
        tfrt(&line)
    };
    for (tags, numbers) in [
        (&[][..], ["2", "3"]),
        (&["--tags", "serve"], ["2", "3"]),
        (&["--tags", "gpu,train"], ["2", "-3"]),
    ] {
        let (status, told) = run(tags);
        assert_eq!(status, Some(0), "{told}");
        let found: Vec<f32> = told
            .split(|c: char| !c.is_ascii_digit() && !"-.".contains(c))
            .filter_map(|word| word.parse().ok())
            .collect();
        let wanted = numbers.map(|number| number.parse::<f32>().unwrap());
        assert!(found.ends_with(&wanted), "{tags:?}: {told}");
    }
    let (status, told) = run(&["--tags", "tpu"]);
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("expected a graph with the tags 'tpu', found 'serve', 'gpu,train'"),
        "{told}"
    );
    let (status, told) = tfrt(&["check", "tagged", "--tags", "gpu,train"]);
    assert_eq!(status, Some(0), "{told}");
}
