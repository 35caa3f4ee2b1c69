//! Prints ONNX models as text: `cargo run -p tfrt-import --example show -- model.onnx`.
//!
//! With `--check` in front it says of each model only whether its text is read back as the same.

use std::{path::Path, process::ExitCode};

use tfrt_import::onnx::{Options, import};
use tfrt_ir::{Diagnostics, Module, Source, parse, verify};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let checks = arguments.first().is_some_and(|first| first == "--check");
    if checks {
        arguments.remove(0);
    }
    let mut n_failed = 0;
    for path in &arguments {
        match read(Path::new(path)).and_then(|module| again(&module).map(|()| module)) {
            Ok(_) if checks => {}
            Ok(module) => print!("{module}"),
            Err(errors) => {
                n_failed += 1;
                println!("{path}:\n{errors}");
            }
        }
    }
    if checks {
        println!(
            "{} of {} models are fine",
            arguments.len() - n_failed,
            arguments.len()
        );
    }
    ExitCode::from(u8::from(n_failed > 0))
}

fn read(path: &Path) -> Result<Module, Diagnostics> {
    let bytes = std::fs::read(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Diagnostics::from(tfrt_ir::Diagnostic::error(
            tfrt_ir::codes::UNREADABLE,
            message,
        ))
    })?;
    import(bytes, &Options::at_path(path))
}

/// Checks that a module verifies, and that its text parses to a module with the same text.
fn again(module: &Module) -> Result<(), Diagnostics> {
    verify(module)?;
    let text = module.to_string();
    let source = Source::new("printed.mlir", text.clone());
    let read = parse(&source)?;
    verify(&read)?;
    if read.to_string() == text {
        return Ok(());
    }
    let message = "the text is read as another module";
    Err(tfrt_ir::Diagnostic::error(tfrt_import::codes::NOT_A_MODEL, message).into())
}
