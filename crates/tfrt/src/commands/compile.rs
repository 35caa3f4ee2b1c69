//! `tfrt compile`: MLIR text, or a model, to a BEF file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt::bef::{BefBuffer, BefFile};
use tfrt::codes;
use tfrt::input::{ApartWeights, Input, STANDARD_INPUT};
use tfrt::ir::Diagnostics;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{OpenError, OpenOptions, Program, Runtime, SingleThreadedWorkQueue, Warnings};

use super::output::{self, Delivery, files_of};
use super::{check, testing};
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
    let warnings = Warnings::default();
    let opening = options.dims.open_options(!options.no_optimize);
    let opening = opening.warnings(warnings.clone());
    let testing = options.testing;
    let source = match input {
        Input::Text(source) => source,
        input @ Input::Model { .. } if !testing.is_asked_for() => {
            let waiting = talk.waiting(&format!("compiling {}", input.name()));
            let path = output_path(options);
            let mut delivery = Delivery::default();
            let data = data_path(&path);
            let name = data.file_name().unwrap_or_default().to_string_lossy();
            let bytes = input.compile_apart(&how, set, &opening, &name, |weights| {
                add_weights(
                    &mut delivery,
                    weights,
                    &path,
                    &files_of(&options.file, &input),
                )
            })?;
            drop(waiting);
            talk.diagnostics(&warnings.take());
            expect_kernels(&input, &bytes, &opening, talk)?;
            return deliver(&path, &files_of(&options.file, &input), &bytes, delivery);
        }
        input => return Err(no_text(&input)),
    };
    if testing.verify_diagnostics {
        if !options.dims.dims.is_empty() {
            let message =
                "--dim is for models that are written, and --verify-diagnostics writes none";
            return Err(Failure::Usage(message.to_owned()));
        }
        return testing::compare(&source, testing, talk, |part| {
            let compiled = Input::Text(part.clone()).compile_for(&how, set, &opening);
            compiled.map(drop).map_err(|error| match error {
                OpenError::Text(diagnostics) => diagnostics,
                // Nothing else is refused of a text without dimensions that are fixed.
                _ => Diagnostics::default(),
            })
        });
    }
    let mut bytes = Vec::new();
    let mut rejected = false;
    for (index, part) in testing::parts(&source, testing).iter().enumerate() {
        if index > 0 {
            bytes.extend_from_slice(testing::SEPARATOR.as_bytes());
        }
        match Input::Text(part.clone()).compile_for(&how, set, &opening) {
            Ok(compiled) => {
                talk.diagnostics(&warnings.take());
                bytes.extend_from_slice(compiled.as_bytes());
            }
            Err(OpenError::Text(diagnostics)) => {
                talk.failure(&Failure::Text(diagnostics));
                rejected = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if rejected {
        return Err(Failure::Told(ExitStatus::Rejected));
    }
    let read = std::slice::from_ref(&options.file);
    write(&output_path(options), read, &bytes)
}

/// Refuses a model with operations that nothing here runs: its file could not be opened.
fn expect_kernels(
    input: &Input,
    bytes: &BefBuffer,
    opening: &OpenOptions,
    talk: &Talk,
) -> Result<(), Failure> {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let runtime = Runtime::builder().queue(queue).build();
    let file = BefFile::open(bytes.clone()).map_err(|reason| OpenError::Bytes {
        name: input.name().to_owned(),
        reason,
    })?;
    let Err(error) = Program::from_file(file, &runtime) else {
        return Ok(());
    };
    let told = check::told_if_missing(input, opening, &runtime, false, talk);
    Err(told.unwrap_or(Failure::Open(error)))
}

/// Where weights go that are too large for the program: beside it, with `.data` behind its name.
fn data_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".data");
    PathBuf::from(name)
}

/// Copies weights that stay in files to the one beside the program; returns its id.
fn add_weights(
    delivery: &mut Delivery,
    weights: &ApartWeights,
    path: &Path,
    read: &[PathBuf],
) -> Result<String, Failure> {
    if path == Path::new(STANDARD_INPUT) {
        return Err(Failure::Usage(
            "the weights need a file beside the program; name one for that with -o".to_owned(),
        ));
    }
    let data = data_path(path);
    output::refuse_inputs(&data, read, "-o")?;
    let mut id = String::new();
    delivery.add_file(&data, |file| {
        id = weights.write(file)?;
        Ok(())
    })?;
    Ok(id)
}

/// Writes a program, with what is delivered together with it.
fn deliver(
    path: &Path,
    read: &[PathBuf],
    bytes: &BefBuffer,
    mut delivery: Delivery,
) -> Result<ExitStatus, Failure> {
    if path == Path::new(STANDARD_INPUT) {
        return write(path, read, bytes.as_bytes());
    }
    output::refuse_inputs(path, read, "-o")?;
    delivery.add(path, |out| out.write_all(bytes.as_bytes()))?;
    delivery.finish()?;
    Ok(ExitStatus::Fine)
}

/// Writes what was made of files.
fn write(path: &Path, read: &[PathBuf], bytes: &[u8]) -> Result<ExitStatus, Failure> {
    if path == Path::new(STANDARD_INPUT) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "bytes are not written to a terminal; name a file with -o".to_owned(),
        ));
    }
    output::write(path, read, "-o", bytes)?;
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
