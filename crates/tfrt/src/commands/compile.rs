//! `tfrt compile`: MLIR text, or a model, to a BEF file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt::bef::{BefBuffer, BefFile};
use tfrt::codes;
use tfrt::input::{ExternalWeights, Input, STANDARD_INPUT};
use tfrt::ir::{Diagnostics, Source};
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{OpenError, OpenOptions, Program, Runtime, SingleThreadedWorkQueue, Warnings};

use super::output::{self, Delivery, files_of};
use super::{check, testing};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::CompileOptions;

/// Compiles a model, or a text, or each part of it: reads, compiles, checks that a model can be loaded, writes.
pub fn compile(options: &CompileOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let input = Input::read(&options.file)?;
    let compiler = Compiler::new(options);
    match input {
        Input::Text(source) if options.testing.verify_diagnostics => {
            compare_diagnostics(&source, &compiler, options, console)
        }
        Input::Text(source) => {
            let bytes = compile_text(&source, &compiler, options, console)?;
            let files_read = std::slice::from_ref(&options.file);
            write(&output_path(options), files_read, &bytes)
        }
        Input::Model { .. } if !options.testing.is_asked_for() => {
            compile_model(&input, &compiler, options, console)
        }
        input => Err(no_text(&input)),
    }
}

/// The settings of the compiler that the command line asks for.
struct Compiler {
    options: tfrt::compiler::CompileOptions,
    instructions: InstructionSet,
    opening: OpenOptions,
    /// The warnings of compilations, until they are told.
    warnings: Warnings,
}

impl Compiler {
    fn new(options: &CompileOptions) -> Compiler {
        let warnings = Warnings::default();
        let opening = options.dims.open_options(!options.no_optimize);
        Compiler {
            options: tfrt::compiler::CompileOptions {
                strip: options.strip,
            },
            instructions: options.instructions.unwrap_or_else(InstructionSet::best),
            opening: opening.warnings(warnings.clone()),
            warnings,
        }
    }

    /// Compiles a text.
    fn compile(&self, source: &Source) -> Result<BefBuffer, OpenError> {
        let input = Input::Text(source.clone());
        input.compile_for(&self.options, self.instructions, &self.opening)
    }
}

/// Compiles a model to a file, with large weights in another beside it.
fn compile_model(
    input: &Input,
    compiler: &Compiler,
    options: &CompileOptions,
    console: &Console,
) -> Result<ExitStatus, Failure> {
    let progress = console.progress(&format!("compiling {}", input.name()));
    let path = output_path(options);
    let mut delivery = Delivery::default();
    let data = data_path(&path);
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    let files_read = || files_of(&options.file, input);
    let bytes = input.compile_with_external_weights(
        &compiler.options,
        compiler.instructions,
        &compiler.opening,
        &name,
        |weights| add_weights(&mut delivery, weights, &path, &files_read()),
    )?;
    drop(progress);
    console.diagnostics(&compiler.warnings.take());
    expect_kernels(input, &bytes, &compiler.opening, console)?;
    deliver(&path, &files_read(), &bytes, delivery)
}

/// Compares the errors of each part of a text with those that it announces.
fn compare_diagnostics(
    source: &Source,
    compiler: &Compiler,
    options: &CompileOptions,
    console: &Console,
) -> Result<ExitStatus, Failure> {
    if !options.dims.dims.is_empty() {
        let message = "--dim is for models that are written, and --verify-diagnostics writes none";
        return Err(Failure::Usage(message.to_owned()));
    }
    testing::compare(source, options.testing, console, |part| {
        let compiled = compiler.compile(part);
        compiled.map(drop).map_err(|error| match error {
            OpenError::Text(diagnostics) => diagnostics,
            // Nothing else is refused of a text without dimensions that are fixed.
            _ => Diagnostics::default(),
        })
    })
}

/// Compiles each part of a text, and tells of the errors of all. Returns the bytes, separated as the parts were.
fn compile_text(
    source: &Source,
    compiler: &Compiler,
    options: &CompileOptions,
    console: &Console,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut is_rejected = false;
    for (index, part) in testing::parts(source, options.testing).iter().enumerate() {
        if index > 0 {
            bytes.extend_from_slice(testing::SEPARATOR.as_bytes());
        }
        match compiler.compile(part) {
            Ok(compiled) => {
                console.diagnostics(&compiler.warnings.take());
                bytes.extend_from_slice(compiled.as_bytes());
            }
            Err(OpenError::Text(diagnostics)) => {
                console.failure(&Failure::Text(diagnostics));
                is_rejected = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    match is_rejected {
        true => Err(Failure::Told(ExitStatus::Rejected)),
        false => Ok(bytes),
    }
}

/// Refuses a model with operations that nothing here runs: its file could not be opened.
fn expect_kernels(
    input: &Input,
    bytes: &BefBuffer,
    opening: &OpenOptions,
    console: &Console,
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
    let told = check::told_if_missing(input, opening, &runtime, false, console);
    Err(told.unwrap_or(Failure::Open(error)))
}

/// Returns the path for weights that are too large for the program: its own path, with `.data` behind it.
fn data_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".data");
    PathBuf::from(name)
}

/// Copies weights that stay in files to the file of weights beside the program; returns the id of that file.
fn add_weights(
    delivery: &mut Delivery,
    weights: &ExternalWeights,
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

/// Writes a program, together with the files of a delivery.
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

/// Writes the bytes that were made of the files that were read.
fn write(path: &Path, read: &[PathBuf], bytes: &[u8]) -> Result<ExitStatus, Failure> {
    if path == Path::new(STANDARD_INPUT) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "bytes are not written to a terminal; name a file with -o".to_owned(),
        ));
    }
    output::write(path, read, "-o", bytes)?;
    Ok(ExitStatus::Fine)
}

/// Returns the failure of a command that takes text, and got something else.
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

/// Returns the path that the bytes are written to.
fn output_path(options: &CompileOptions) -> PathBuf {
    match &options.output {
        Some(path) => path.clone(),
        None if options.file == Path::new(STANDARD_INPUT) => PathBuf::from(STANDARD_INPUT),
        None => options.file.with_extension("bef"),
    }
}
