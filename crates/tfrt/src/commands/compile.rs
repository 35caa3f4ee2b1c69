//! `tfrt compile`: MLIR text, or a model, to a BEF file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tfrt::codes;
use tfrt::input::{Input, STANDARD_INPUT};
use tfrt::tensor::math::panel::InstructionSet;

use super::output::{self, files_of};
use super::testing;
use crate::failure::{ExitStatus, Failure};
use crate::options::CompileOptions;
use crate::talk::Talk;

/// Compiles a model, or a text, or each part of it.
pub fn compile(options: &CompileOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let input = Input::read(&options.file)?;
    let how = tfrt::compiler::CompileOptions {
        strip: options.strip,
    };
    let set = options.instructions.unwrap_or_else(InstructionSet::best);
    let testing = options.testing;
    let source = match input {
        Input::Text(source) => source,
        input @ Input::Model { .. } if !testing.is_asked_for() => {
            let waiting = talk.waiting(&format!("compiling {}", input.name()));
            let bytes = input.compile_for(&how, set)?;
            drop(waiting);
            return write(options, &files_of(&options.file, &input), bytes.as_bytes());
        }
        input => return Err(no_text(&input)),
    };
    if testing.verify_diagnostics {
        return testing::compare(&source, testing, talk, |part| {
            Input::Text(part.clone()).compile_for(&how, set).map(drop)
        });
    }
    let mut bytes = Vec::new();
    let mut rejected = false;
    for (index, part) in testing::parts(&source, testing).iter().enumerate() {
        if index > 0 {
            bytes.extend_from_slice(testing::SEPARATOR.as_bytes());
        }
        match Input::Text(part.clone()).compile_for(&how, set) {
            Ok(compiled) => bytes.extend_from_slice(compiled.as_bytes()),
            Err(diagnostics) => {
                talk.failure(&Failure::Text(diagnostics));
                rejected = true;
            }
        }
    }
    if rejected {
        return Err(Failure::Told(ExitStatus::Rejected));
    }
    write(options, std::slice::from_ref(&options.file), &bytes)
}

/// Writes what was made of files.
fn write(options: &CompileOptions, read: &[PathBuf], bytes: &[u8]) -> Result<ExitStatus, Failure> {
    let path = output_path(options);
    if path == Path::new(STANDARD_INPUT) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "bytes are not written to a terminal; name a file with -o".to_owned(),
        ));
    }
    output::write(&path, read, "-o", bytes)?;
    Ok(ExitStatus::Fine)
}

/// Says that what a command wants is the text that an input could be.
pub fn no_text(input: &Input) -> Failure {
    let name = input.name();
    let (kind, help) = match input {
        Input::Model { .. } => ("an ONNX model", format!("`tfrt opt {name}` gives its text")),
        _ => (
            "a BEF file",
            format!("`tfrt decompile {name}` gives its text"),
        ),
    };
    Failure::Rejected {
        code: Some(codes::TEXT_EXPECTED),
        message: format!("expected MLIR text, but '{name}' is {kind}"),
        help: Some(help),
    }
}

/// Where the bytes go.
fn output_path(options: &CompileOptions) -> PathBuf {
    match &options.output {
        Some(path) => path.clone(),
        None if options.file == Path::new(STANDARD_INPUT) => PathBuf::from(STANDARD_INPUT),
        None => options.file.with_extension("bef"),
    }
}
