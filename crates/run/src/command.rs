//! The command `tfrt-run`, with any kernels.

use std::fs::File;
use std::io::{self, Read};
use std::panic;
use std::process::ExitCode;
use std::sync::Arc;

use tfrt_bef::{BefBuffer, BefFile, layout};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    Error, ExecutionContext, Function, HostContext, LoadError, LoadProblem, Output, Program,
    RequestContext, SourceLocation,
};

use crate::arguments;
use crate::errors::Errors;
use crate::exit::ExitStatus;
use crate::options::{self, HELP, Options, Request};
use crate::report::{error_message, unless_unread};
use crate::session::{Session, not_running_line, running_line};

/// The largest BEF file: offsets in it have 32 bits.
const MAX_BEF_BYTES: u64 = 1 << 32;

/// Runs the command line of the process, with the kernels that `register` adds.
pub fn main(register: fn(&mut KernelRegistry)) -> ExitCode {
    let words = std::env::args_os().skip(1);
    main_of(
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        register,
    )
    .into()
}

/// Runs the command of these words, which stand behind its name, with the kernels that `register`
/// adds.
pub fn main_of(words: Vec<String>, register: fn(&mut KernelRegistry)) -> ExitStatus {
    panic::set_hook(Box::new(|info| {
        // A kernel that panics fails its results, which is where its message goes.
        if !tfrt_host::is_in_kernel() {
            say(&format!("this is a fault of tfrt-run itself: {info}"));
        }
    }));
    let outcome = match options::read(words) {
        Ok(Request::Help) => {
            unless_unread(Output::standard().try_print(HELP)).map(|()| ExitStatus::Fine)
        }
        Ok(Request::Version) => {
            print(concat!("tfrt-run ", env!("CARGO_PKG_VERSION"))).map(|()| ExitStatus::Fine)
        }
        Ok(Request::Run(options)) => {
            let run = || run(&options, register);
            let caught = panic::catch_unwind(run);
            caught.unwrap_or(Ok(ExitStatus::Internal))
        }
        Err(message) => {
            say(&format!("{message}; `tfrt-run --help` tells more"));
            Ok(ExitStatus::Usage)
        }
    };
    match outcome {
        Ok(status) => status,
        Err(error) => {
            let error = error_message(&error);
            say(&format!("cannot write to standard output: {error}"));
            ExitStatus::Rejected
        }
    }
}

/// Runs a program.
///
/// # Errors
///
/// If standard output can't be written.
fn run(options: &Options, register: fn(&mut KernelRegistry)) -> io::Result<ExitStatus> {
    let errors = Arc::new(Errors::default());
    let host = match start(options, register, errors.clone()) {
        Ok(host) => host,
        Err(error) => {
            say(&format!("couldn't create work queue: {error}"));
            return Ok(ExitStatus::LimitExceeded);
        }
    };
    let session = Session {
        host,
        queue: options.queue,
        errors,
        print_error_code: options.print_error_code,
    };
    let functions = match open(options, &session.host) {
        Ok(functions) => functions,
        Err(Refusal::Program(problems)) => {
            problems.problems().iter().for_each(refuse);
            return Ok(ExitStatus::Rejected);
        }
        Err(Refusal::Other(status, message)) => {
            say(&message);
            return Ok(status);
        }
    };
    let mut status = ExitStatus::Fine;
    for function in &functions {
        status = status.max(run_one(&session, function, options)?);
    }
    let failure = session.host.output().failure();
    unless_unread(failure.map_or(Ok(()), |kind| Err(kind.into())))?;
    Ok(status)
}

fn start(
    options: &Options,
    register: fn(&mut KernelRegistry),
    errors: Arc<Errors>,
) -> Result<HostContext, Error> {
    let mut registry = KernelRegistry::new();
    register(&mut registry);
    let builder = HostContext::builder(registry)
        .queue(options.queue.start(None)?)
        .diagnostics(move |error| errors.hear(error));
    Ok(builder.build())
}

/// The reason why nothing is run.
enum Refusal {
    /// The program does not fit the kernels.
    Program(LoadError),
    Other(ExitStatus, String),
}

/// Reads and loads a program, and finds the functions to run.
fn open(options: &Options, host: &HostContext) -> Result<Vec<Function>, Refusal> {
    let rejected = |message| Refusal::Other(ExitStatus::Rejected, message);
    let file = &options.file;
    let bytes = read(file).map_err(|error| {
        let error = error_message(&error);
        rejected(format!("cannot open input file '{file}': {error}"))
    })?;
    if !bytes.starts_with(&layout::MAGIC) {
        let message =
            format!("'{file}' is not a compiled program; `tfrt compile` makes one of text");
        return Err(rejected(message));
    }
    let opened = BefFile::open(BefBuffer::from_vec(bytes));
    let opened = opened.map_err(|error| rejected(format!("{file}: {error}")))?;
    let loaded = Program::load(opened, host);
    let program = loaded.map_err(Refusal::Program)?;
    let functions: Vec<Function> = match options.functions.as_slice() {
        [] => program.functions().collect(),
        names => {
            let find = |name: &String| {
                let function = program.function(name);
                function.ok_or_else(|| rejected(format!("couldn't find function {name}")))
            };
            names.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    let hosted: Vec<&Function> = functions.iter().collect();
    arguments::check(&hosted, &options.functions, &options.arguments)
        .map_err(|message| Refusal::Other(ExitStatus::Usage, message))?;
    Ok(functions)
}

fn read(file: &str) -> io::Result<Vec<u8>> {
    let from = match file {
        "-" => File::from(rustix::stdio::stdin().try_clone_to_owned()?),
        path => File::open(path)?,
    };
    let mut bytes = Vec::new();
    from.take(MAX_BEF_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn run_one(session: &Session, function: &Function, options: &Options) -> io::Result<ExitStatus> {
    let arguments = match arguments::for_function(function, &options.arguments) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return print(&not_running_line(function)).map(|()| ExitStatus::Fine),
        Err(message) => {
            say(&message);
            return Ok(ExitStatus::Usage);
        }
    };
    print(&running_line(function))?;
    let context = ExecutionContext::new(&RequestContext::builder(&session.host).build());
    let called = session.call(function, &context, arguments, &mut print)?;
    let reason = context.request().cancellation().cloned();
    drop(context);
    let outcome = session.end(called, reason, false);
    outcome.errors.iter().chain(&outcome.stopped).for_each(tell);
    Ok(outcome.status)
}

/// Prints an error that a kernel reported, in the short form of `tfrt run`.
fn tell(error: &Error) {
    tell_at(error.location(), &format!("runtime error: {error}"));
}

/// Prints the reason why a program can't be loaded, in the short form of `tfrt run`.
fn refuse(problem: &LoadProblem) {
    let message = format!("{} [{}]", problem.message, problem.code);
    tell_at(problem.location.as_ref(), &message);
}

fn tell_at(location: Option<&SourceLocation>, message: &str) {
    log(match location {
        Some(location) => format!("{location}: error: {message}"),
        None => format!("<unknown>:0: error: {message}"),
    });
}

/// Prints a message on standard error. Nothing can be done if that fails.
fn say(message: &str) {
    log(format!("tfrt-run: error: {message}"));
}

fn log(line: String) {
    Output::standard().log(visible(&line));
}

/// Returns untrusted text without what a terminal would obey, on one line.
fn visible(line: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    line.chars().map(shown).collect()
}

/// Prints a line, and flushes it.
fn print(line: &str) -> io::Result<()> {
    unless_unread(Output::standard().try_print(visible(line)))
}
