//! Inputs that a search starts from: the programs of the repository, their bytes, models and values made by
//! hand, random choices.

mod corpus;
mod models;

use std::fs;
use std::path::{Path, PathBuf};

use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::{Source, parse, split};
use tfrt_oracle::random::Random;

pub use corpus::Corpus;
pub use models::models;

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the programs of the repository, one for each part of a file, by path.
///
/// # Panics
///
/// If the repository cannot be read.
pub fn programs() -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in ["tests", "examples", "crates/compiler/tests"] {
        programs_under(&root().join(folder), &mut paths);
    }
    paths.sort();
    let mut programs = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Those that are no UTF-8 are of no use here.
        let text = fs::read(&path).expect("it can be read");
        let Ok(source) = Source::from_bytes(name, text) else {
            continue;
        };
        programs.extend(split::split(&source));
    }
    programs
}

fn programs_under(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let is_program = path.extension().is_some_and(|kind| kind == "mlir");
        if path.is_dir() {
            programs_under(&path, found);
        } else if is_program {
            found.push(path);
        }
    }
}

/// Returns the bytes of the programs of the repository that compile, and their names.
pub fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for source in programs() {
        let Ok(module) = parse(&source) else { continue };
        for strip in [false, true] {
            if let Ok(bytes) = compile(&module, &CompileOptions { strip }) {
                let name = format!(
                    "{}:{}, strip {strip}",
                    source.name(),
                    source.line_offset() + 1
                );
                files.push((name, bytes.as_bytes().to_vec()));
            }
        }
    }
    files
}

/// Returns inputs for the target of a name.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    match target {
        "parse" | "round_trip" => {
            let text = |source: Source| source.text().as_bytes().to_vec();
            programs().into_iter().map(text).collect()
        }
        "open" | "reopen" => files().into_iter().map(|(_, bytes)| bytes).collect(),
        "import" => {
            let onnx = models().into_iter().map(|(_, bytes)| bytes);
            let others = models::saved_models().into_iter().chain(models::modules());
            onnx.chain(others).collect()
        }
        "decode" => crate::values::examples(),
        "control" => crate::control::examples(),
        "requests" => tfrt_serve::outside::examples(),
        "wire" => crate::wire::examples(),
        _ => (0..200).map(choices).collect(),
    }
}

/// Returns some choices of a seed.
fn choices(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let len = 16 << random.below(7);
    (0..len).map(|_| random.bits().to_le_bytes()[0]).collect()
}
