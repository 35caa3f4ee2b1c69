//! `tfrt decompile`: a BEF file to MLIR text.

use tfrt::bef::BefFile;
use tfrt::compiler;
use tfrt::input::{self, Input};
use tfrt::ir::{Diagnostics, Location, PrintOptions, print};

use super::{output, testing};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::DecompileOptions;

/// Decompiles a file, or each part of a text after it was compiled.
pub fn decompile(options: &DecompileOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let input = Input::read(&options.file)?;
    let parts: Vec<Input> = match &input {
        Input::Text(source) if options.testing.verify_diagnostics => {
            return testing::compare(source, options.testing, console, |part| {
                let bytes = input::compile(part, &compiler::CompileOptions::default())?;
                let Ok(file) = BefFile::open(bytes) else {
                    return Ok(());
                };
                compiler::decompile(&file).map(drop)
            });
        }
        Input::Text(source) => {
            let parts = testing::parts(source, options.testing).into_iter();
            parts.map(Input::Text).collect()
        }
        Input::Bytes { .. } | Input::Model { .. } => vec![input],
    };
    let mut texts = Vec::new();
    let mut status = ExitStatus::Fine;
    for part in &parts {
        match text_of(part, options, console) {
            Ok(text) => texts.push(text),
            Err(failure) => {
                console.failure(&failure);
                status = status.max(failure.status());
            }
        }
    }
    let text = texts.join(testing::SEPARATOR);
    let mut read = vec![options.file.clone()];
    read.extend(parts.iter().flat_map(Input::files_beside));
    output::write(&options.output, &read, "-o", text.as_bytes())?;
    Ok(status)
}

fn text_of(
    input: &Input,
    options: &DecompileOptions,
    console: &Console,
) -> Result<String, Failure> {
    let file = input.open()?;
    let restored = compiler::decompile(&file).map_err(|errors| placed(&errors, input.name()))?;
    if !restored.warnings.is_empty() {
        console.failure(&placed(&restored.warnings, input.name()).into());
    }
    let how = PrintOptions {
        generic: options.generic,
        locations: !options.no_locations,
    };
    Ok(print(&restored.module, how))
}

/// Returns diagnostics in which those without a place have the file as a whole.
pub fn placed(diagnostics: &Diagnostics, name: &str) -> Diagnostics {
    let mut all = Diagnostics::default();
    for diagnostic in diagnostics {
        let is_placed = *diagnostic.location() != Location::Unknown;
        let whole = Location::FileLineCol {
            file: name.into(),
            line: 0,
            column: 0,
        };
        all.push(match is_placed {
            true => diagnostic.clone(),
            false => diagnostic.clone().at_location(whole),
        });
    }
    all
}
