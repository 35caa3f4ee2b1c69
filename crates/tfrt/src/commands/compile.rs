//! `tfrt compile`: MLIR text to a BEF file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tfrt::codes;
use tfrt::input::{self, Input, STANDARD_INPUT};
use tfrt::ir::Source;

use super::{output, testing};
use crate::failure::{ExitStatus, Failure};
use crate::options::CompileOptions;
use crate::talk::Talk;

/// Compiles a text, or each part of it.
pub fn compile(options: &CompileOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let source = read_text(&options.file)?;
    let how = tfrt::compiler::CompileOptions {
        strip: options.strip,
    };
    let testing = options.testing;
    if testing.verify_diagnostics {
        return testing::compare(&source, testing, talk, |part| {
            input::compile(part, &how).map(drop)
        });
    }
    let mut bytes = Vec::new();
    let mut rejected = false;
    for (index, part) in testing::parts(&source, testing).iter().enumerate() {
        if index > 0 {
            bytes.extend_from_slice(testing::SEPARATOR.as_bytes());
        }
        match input::compile(part, &how) {
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
    let path = output_path(options);
    if path == Path::new(STANDARD_INPUT) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "bytes are not written to a terminal; name a file with -o".to_owned(),
        ));
    }
    output::write(&path, &options.file, &bytes)?;
    Ok(ExitStatus::Fine)
}

/// Reads a text, and refuses bytes.
pub fn read_text(path: &Path) -> Result<Source, Failure> {
    match Input::read(path)? {
        Input::Text(source) => Ok(source),
        Input::Bytes { name, .. } => Err(Failure::Rejected {
            code: Some(codes::TEXT_EXPECTED),
            message: format!("expected MLIR text, but '{name}' is a BEF file"),
            help: Some(format!("`tfrt decompile {name}` gives its text")),
        }),
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
