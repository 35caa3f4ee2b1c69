//! `seed TARGET FOLDER`: writes the inputs that a search for the target starts from.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = arguments.as_slice() else {
        eprintln!("Usage: seed TARGET FOLDER");
        return ExitCode::from(2);
    };
    for (number, input) in tfrt_fuzz::seeds::inputs(target).iter().enumerate() {
        let path = Path::new(folder).join(format!("seed{number:04}"));
        if let Err(error) = std::fs::write(&path, input) {
            eprintln!("cannot write '{}': {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
