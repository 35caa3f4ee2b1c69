//! `seed TARGET FOLDER`: writes the inputs that a search for the target starts from, and those of its corpus.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use tfrt_fuzz::seeds::{Corpus, inputs};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = arguments.as_slice() else {
        eprintln!("Usage: seed TARGET FOLDER");
        return ExitCode::from(2);
    };
    let corpus = Corpus::of(target);
    let listed = corpus.listed();
    let changed = listed.iter().map(|number| corpus.input(*number));
    for (number, input) in inputs(target).into_iter().chain(changed).enumerate() {
        let path = Path::new(folder).join(format!("seed{number:04}"));
        if let Err(error) = std::fs::write(&path, input) {
            eprintln!("cannot write '{}': {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
