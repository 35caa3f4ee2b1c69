//! Tests of broken models: each is refused at once, on a small stack, with errors that say where and why. The errors
//! stand in `broken/expected.txt`; `UPDATE_EXPECT=1` writes them anew.

mod cases;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use expect_test::expect_file;
use tfrt_import::{
    FRONT_ENDS, FileHead, ModelBytes, ReadLimits, codes,
    onnx::{ExternalData, Folder, Options, import},
};
use tfrt_ir::Diagnostics;

use crate::wire;

/// The time that a refusal may take; tests run unoptimized, on busy machines.
const LIMIT: Duration = Duration::from_secs(5);

/// The stack of a thread, as large as Rust's default.
const STACK_BYTES: usize = 2 << 20;

/// The folder of the files that cases name, made once: parallel tests read them.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let around = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
    let folder = around.join("model");
    fs::create_dir_all(folder.join("folder")).unwrap();
    fs::write(around.join("secret.bin"), [0; 8]).unwrap();
    fs::write(folder.join("w.bin"), [0; 8]).unwrap();
    fs::write(folder.join("short.bin"), [0; 7]).unwrap();
    let link = folder.join("link.bin");
    let _ = fs::remove_file(&link);
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.bin", &link).unwrap();
    folder
});

fn refuse(bytes: Vec<u8>, folder: &Path) -> (Option<Diagnostics>, Duration) {
    let options = Options {
        external_data: ExternalData::Folder(Folder::new(folder)),
        ..Options::new("model.onnx")
    };
    let run = move || {
        let start = Instant::now();
        let errors = import(bytes, &options).err();
        (errors, start.elapsed())
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    thread.unwrap().join().expect("import does not panic")
}

#[test]
fn broken_models_are_refused_with_a_place_and_a_reason() {
    let mut text = String::new();
    let mut shown = BTreeSet::new();
    let all = cases::all();
    assert!(all.len() >= 60, "{}", all.len());
    for case in all {
        let (errors, took) = refuse(case.bytes, &FOLDER);
        let errors = errors.unwrap_or_else(|| panic!("'{}' is not refused", case.name));
        assert!(took < LIMIT, "'{}' took {took:?}", case.name);
        shown.extend(errors.iter().filter_map(|error| error.code()));
        // The system has its own words for what it does not find.
        let said = errors.to_string();
        let said = said.split(" (os error").next().unwrap_or_default();
        text.push_str(&format!("== {}\n{said}\n", case.name));
    }
    expect_file!["./broken/expected.txt"].assert_eq(&text);
    let known: BTreeSet<&str> = codes::ALL.iter().map(|(code, _)| *code).collect();
    assert_eq!(shown, known, "every code is shown");
}

#[test]
fn files_beside_a_model_need_its_folder() {
    let model = wire::with_initializer(wire::external(&[("location", "w.bin")]));
    let errors = import(model.0.clone(), &Options::new("model.onnx")).unwrap_err();
    assert!(
        errors.to_string().contains("the model's folder is unknown"),
        "{errors}"
    );
    let (errors, _) = refuse(model.0, &FOLDER);
    assert!(errors.is_none(), "{errors:?}");
}

#[test]
fn folder_knows_which_of_its_files_were_read() {
    let folder = Folder::new(&*FOLDER);
    let read = |entries: &[(&str, &str)]| {
        let options = Options {
            external_data: ExternalData::Folder(folder.clone()),
            ..Options::new("model.onnx")
        };
        let model = wire::with_initializer(wire::external(entries));
        let _ = import(model.0, &options);
        folder.files_read()
    };
    assert!(read(&[("location", "missing.bin")]).is_empty());
    let file = fs::canonicalize(FOLDER.join("w.bin")).unwrap();
    assert_eq!(read(&[("location", "w.bin")]), [file]);
}

#[test]
fn files_beside_the_model_of_a_stranger_are_refused() {
    let options = Options {
        external_data: ExternalData::Refused,
        ..Options::new("model.onnx")
    };
    let model = wire::with_initializer(wire::external(&[("location", "w.bin")]));
    let errors = import(model.0, &options).unwrap_err().to_string();
    let expected = "has its elements in another file, which is refused to programs of strangers";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn models_beyond_the_limits_of_the_reader_are_refused() {
    let relu = |from, to| wire::node("Relu", &[from], &[to]);
    let model = wire::model(wire::graph([relu("x", "a"), relu("a", "y")], "y")).0;
    let read = |nodes: usize| {
        let source = tfrt_import::Source {
            name: "model.onnx",
            bytes: ModelBytes::from(model.clone()),
            path: None,
            part: tfrt_import::Part::default(),
            external_data: &ExternalData::Unknown,
        };
        let limits = ReadLimits {
            nodes,
            ..ReadLimits::default()
        };
        (FRONT_ENDS[0].import)(&source, &limits)
    };
    assert!(read(2).is_ok());
    let expected =
        "model.onnx: error: node 'a_node' (Relu): expected at most 1 nodes in all [TF1003]";
    assert_eq!(read(1).unwrap_err().to_string(), expected);
}

#[test]
fn formats_are_told_by_names_and_by_first_bytes() {
    let onnx = &FRONT_ENDS[0];
    assert!(onnx.has_suffix(Path::new("a/b.onnx")) && !onnx.has_suffix(Path::new("onnx")));
    let recognised = |bytes, is_folder| {
        let path = None;
        (onnx.recognises)(&FileHead {
            bytes,
            path,
            is_folder,
        })
    };
    assert!(recognised(&[0x08, 0x08][..], false));
    assert!(!recognised(&[0x08, 0x08][..], true) && !recognised(b"func.func", false));
}

#[test]
fn other_files_of_a_model_are_read_from_its_folder_alone() {
    let beside = ExternalData::Folder(Folder::new(&*FOLDER));
    assert_eq!(beside.read("w.bin", 8).unwrap(), [0; 8]);
    let refused = |external_data: &ExternalData, name| external_data.read(name, 7).unwrap_err();
    let long = "'w.bin' has 8 bytes, expected at most 7";
    assert_eq!(refused(&beside, "w.bin"), long);
    let out = "names the file '../secret.bin', expected one in the model's folder";
    assert_eq!(refused(&beside, "../secret.bin"), out);
    assert!(refused(&ExternalData::Refused, "w.bin").contains("refused"));
}

#[test]
fn every_prefix_of_a_model_is_refused_or_read() {
    let relu = wire::node("Relu", &["x"], &["y"]);
    let model = wire::model(wire::graph([relu], "y")).0;
    for len in 0..model.len() {
        let cut = model[..len].to_vec();
        if let Ok(module) = import(cut, &Options::new("model.onnx")) {
            tfrt_ir::verify(&module).unwrap();
        }
    }
}
