//! On programs that are wrong the editor hears what `tfrt check` says.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::client::{Client, Encoding};

/// Returns the programs of a folder of the corpus that are text.
fn programs(folder: &str) -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let entries = fs::read_dir(tests.join(folder)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "mlir"))
        .filter(|path| fs::read_to_string(path).is_ok())
        .collect();
    paths.sort();
    paths
}

/// Returns what `tfrt check` has against each program, in the order of the paths.
fn checked(paths: &[PathBuf]) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(["check", "--json"])
        .args(paths)
        .output()
        .expect("the command runs");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it writes JSON");
    document["files"].as_array().expect("it is a list").clone()
}

/// Compares code, place and message of all that is said of each program in a folder.
fn check_folder(folder: &str) {
    let paths = programs(folder);
    assert!(!paths.is_empty());
    let mut client = Client::new(Encoding::Utf8);
    for (path, file) in paths.iter().zip(checked(&paths)) {
        let text = fs::read_to_string(path).expect("it was read before");
        let uri = format!("file://{}", path.display());
        let item = json!({"uri": uri, "languageId": "mlir", "version": 1, "text": text});
        client.tell("textDocument/didOpen", json!({"textDocument": item}));
        let told = client.published(&uri);
        let problems = file["problems"].as_array().expect("it is a list");
        // Of very many both count the rest.
        assert!(
            told.len() >= problems.len(),
            "{uri}\n{told:#?}\n{problems:#?}"
        );
        for (told, problem) in told.iter().zip(problems) {
            assert_eq!(told["code"], problem["code"], "{uri}");
            let message = problem["message"].as_str().expect("it has a message");
            let text = told["message"].as_str().expect("it has a message");
            assert!(text.contains(message), "{uri}\n{text}\n{message}");
            if problem["file"] == path.to_string_lossy().as_ref() {
                let start = &told["range"]["start"];
                let place = [&start["line"], &start["character"]];
                let place = place.map(|number| number.as_u64().map(|number| number + 1));
                let expected = [problem["line"].as_u64(), problem["column"].as_u64()];
                assert_eq!(place, expected, "{uri}\n{text}");
            }
        }
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn broken_programs_get_what_check_says() {
    check_folder("rejected");
    for folder in ["syntax", "names", "types", "verify", "compile", "load"] {
        check_folder(&format!("broken/{folder}"));
    }
}
