//! `check TARGET FILE..`: checks a target's property for the bytes of files.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let target = arguments.first().and_then(|name| {
        let mut targets = tfrt_fuzz::TARGETS.iter();
        targets.find(|target| target.name == name)
    });
    let Some(target) = target else {
        eprintln!("Usage: check TARGET FILE..");
        return ExitCode::from(2);
    };
    for path in &arguments[1..] {
        match std::fs::read(path) {
            Ok(bytes) => (target.check)(&bytes),
            Err(error) => {
                eprintln!("cannot read '{path}': {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
