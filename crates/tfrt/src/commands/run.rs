//! `tfrt run`: compile if the input is text, execute its functions, report what they return.
//!
//! What is printed is what the original's `bef_executor` prints, but for the lines about the
//! allocator and the queue that it chose. Errors that kernels report are told after the line of
//! the function's results, so that the two streams keep an order when they are one.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use tfrt::bef::BefFile;
use tfrt::codes;
use tfrt::host::Captured;
use tfrt::host::trace::{Level, Scope, TraceSink};
use tfrt::input::Input;
use tfrt::ir::{similar, visible};
use tfrt::kernels::graph::stored::laid_again;
use tfrt::tensor::math::panel::InstructionSet;
use tfrt::{
    AnyAsyncValue, Error, ErrorCode, Function, Model, OpenError, Output, Program, Runtime,
    Untrusted,
};
use tfrt_run::report::unless_unread;
use tfrt_run::{Errors, Session, arguments, not_running_line, running_line};

use super::trace::{LineTrace, Stream};
use super::{check, mapped, rejection, write_line};
use crate::failure::{ExitStatus, Failure};
use crate::options::RunOptions;
use crate::talk::{Problem, Talk};

mod allocator;
mod document;
mod ending;
mod interrupt;
mod model;
mod printed;
mod profiling;
mod sampler;
mod stats;

use allocator::Allocator;
use document::Document;
use profiling::Profiling;
use stats::Stats;

pub use document::SCHEMA;
pub use model::SCHEMA as MODEL_SCHEMA;

/// Runs a program and reports the allocator's findings when all of it is gone.
pub fn run(options: &RunOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    match options.untrusted() {
        Some(untrusted) => {
            talk.read_no_files();
            let say = |failure: &Failure| {
                talk.failure(failure);
                if let Err(unwritten) = rejection::of_run(options, failure, talk) {
                    talk.failure(&unwritten);
                }
            };
            ending::within(untrusted.max_time, say, || run_to_end(options, talk))
        }
        None => run_to_end(options, talk),
    }
}

fn run_to_end(options: &RunOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let input = match options.given.mmap {
        true => mapped::read(&options.file, true)?,
        false => Input::read_within(&options.file, options.limits.max_file_bytes())?,
    };
    if let Input::Text(source) = &input {
        talk.remember(source);
    }
    if matches!(input, Input::Model { .. }) && !options.calls_functions() {
        talk.about_model();
    }
    let waiting = talk.waiting(&format!("compiling {}", input.name()));
    let file = match options.untrusted() {
        Some(untrusted) => untrusted.open(&input)?,
        None => input.open()?,
    };
    drop(waiting);
    if file.model().is_some() && !options.calls_functions() {
        talk.about_model();
    }
    let allocator = Allocator::new(options.allocator);
    let errors = Arc::new(Errors::default());
    // A document holds what the program prints: standard output is one object and nothing else.
    let (output, printed) = match options.json {
        true => Output::captured_within(max_printed(options)),
        false if options.limits.untrusted => (printed::output(), Captured::default()),
        false => (Output::standard(), Captured::default()),
    };
    let profiling = Profiling::new(options)?;
    let runtime = runtime(options, &allocator, &errors, output, &profiling)?;
    let session = Session {
        host: runtime.host().clone(),
        queue: options.queue,
        errors,
        print_error_code: options.print_error_code,
    };
    let mut run = Run {
        options,
        profiling: &profiling,
        allocator: &allocator,
        talk,
        session,
        runtime,
        document: Document::new(input.name()),
        printed,
        status: ExitStatus::Fine,
        unwritten: Cell::new(None),
    };
    let (of_model, stats) = run
        .run_program(file, &input)
        .map_err(|failure| run.limited(failure))?;
    let Run {
        runtime,
        session,
        mut document,
        mut status,
        printed,
        unwritten,
        ..
    } = run;
    let failure = runtime.host().output().failure();
    if options.json && failure == Some(io::ErrorKind::StorageFull) {
        let n_bytes = max_printed(options);
        return Err(Failure::Limited {
            message: format!(
                "with --json, a program may print {n_bytes} bytes, and this prints more"
            ),
            help: "that is an eighth of what --max-memory allows".to_owned(),
        });
    }
    let failure = failure.map_or(Ok(()), |kind| Err(kind.into()));
    let written = unwritten.take().map_or(failure, Err);
    if let Err(error) = unless_unread(written) {
        // The status says what came of the program all the same.
        let failure = Failure::Output(error);
        talk.failure(&failure);
        status = status.max(failure.status());
    }
    drop((session, runtime));
    if allocator.finish(options.json, talk)? {
        status = status.max(ExitStatus::Leaked);
    }
    if let (Some(stats), false) = (&stats, options.json) {
        talk.document(stats, || stats.table());
    }
    if !options.json || !talk.begin_document() {
        return Ok(status);
    }
    match options.limits.untrusted {
        true => talk.say(&visible::text(&printed.logged())),
        false => talk.say(&printed.logged()),
    }
    if let Some(mut document) = of_model {
        document.stats = stats;
        document.output = printed.printed();
        document.exit_status = status as u8;
        document.print()?;
        return Ok(status);
    }
    document.stats = stats;
    document.output = printed.printed();
    document.exit_status = status as u8;
    super::print_json(&document)?;
    Ok(status)
}

/// How many bytes a program may print that are kept for a document, where a character may take six.
fn max_printed(options: &RunOptions) -> usize {
    let max_memory = options.limits.limits().max_memory;
    max_memory.map_or(usize::MAX, |bytes| bytes / 8)
}

fn runtime(
    options: &RunOptions,
    allocator: &Allocator,
    errors: &Arc<Errors>,
    output: Output,
    profiling: &Profiling,
) -> Result<Runtime, Failure> {
    let errors = errors.clone();
    let builder = Runtime::builder()
        .queue(profiling.queue(options.queue)?)
        .allocator(profiling.allocator(allocator.for_host()))
        .output(output)
        .diagnostics(move |error| errors.hear(error));
    let to = match options.json {
        true => Stream::StandardError,
        false => Stream::StandardOutput,
    };
    let builder = match options.trace_stdout {
        true => builder.trace(Arc::new(LineTrace::new(options.trace_level.into(), to))),
        false => builder,
    };
    let builder = match profiling.recorder() {
        Some(recorder) => builder.recorder(recorder),
        None => builder,
    };
    let builder = match options.untrusted() {
        Some(untrusted) => builder.untrusted(untrusted),
        None => builder.limits(options.limits.limits()),
    };
    Ok(builder.build())
}

/// One run of the command.
struct Run<'a> {
    options: &'a RunOptions,
    profiling: &'a Profiling,
    allocator: &'a Allocator,
    talk: &'a Talk,
    session: Session,
    runtime: Runtime,
    document: Document,
    /// What the program prints, if that goes into the document.
    printed: Captured,
    status: ExitStatus,
    /// Why standard output could not be written, the first time.
    unwritten: Cell<Option<io::Error>>,
}

pub(super) fn no_such_function(program: &Program, name: &str) -> Failure {
    let functions: Vec<Function> = program.functions().collect();
    let names = || functions.iter().map(Function::name);
    let help = match similar::nearest(name, names()) {
        Some(nearest) => Some(format!("there is a function '{nearest}'")),
        None if functions.is_empty() => Some("the program has no functions".to_owned()),
        None => {
            const SHOWN: usize = 8;
            let shown: Vec<&str> = names().take(SHOWN).collect();
            let more = if functions.len() > SHOWN { ", ..." } else { "" };
            Some(format!("the program has {}{more}", shown.join(", ")))
        }
    };
    Failure::Rejected {
        code: Some(codes::NO_SUCH_FUNCTION),
        message: format!("couldn't find function {name}"),
        help,
    }
}

/// Says that kernels may be missing because a stranger's program must not have them.
fn tell_refused(error: &OpenError, options: &RunOptions, talk: &Talk) {
    if options.limits.untrusted && matches!(error, OpenError::Load(_)) {
        let dialects = Untrusted::REFUSED;
        let document = serde_json::json!({ "schema": "tfrt.refused/1", "dialects": dialects });
        let names = dialects.join(", ");
        talk.document(&document, || {
            format!("note: --untrusted leaves out the kernels of {names}\n")
        });
    }
}

/// Says of weights that were packed for another processor that opening them took longer.
fn tell_packing(runtime: &Runtime, talk: &Talk) {
    let ours = InstructionSet::best().name();
    for set in laid_again(runtime.host()) {
        let document = serde_json::json!({
            "schema": "tfrt.laid-again/1", "packed_for": set, "laid_out_for": ours,
        });
        talk.document(&document, || {
            format!(
                "note: weights were packed for {set} and laid out again for {ours}: `tfrt compile` on this \
                 processor saves that\n"
            )
        });
    }
}

impl Run<'_> {
    /// Loads the program and runs what of it was asked for. Returns the report of a model, and where the time went.
    fn run_program(
        &mut self,
        file: BefFile,
        input: &Input,
    ) -> Result<(Option<model::Document>, Option<Stats>), Failure> {
        let (options, talk, profiling) = (self.options, self.talk, self.profiling);
        let program = Program::from_file(file, &self.runtime).map_err(|error| {
            tell_refused(&error, options, talk);
            check::told_if_missing(input, &self.runtime, options.json, talk)
                .unwrap_or(Failure::Open(error))
        })?;
        let is_model = program.as_host_program().file().model().is_some();
        let is_called = is_model && !options.calls_functions();
        if !is_called && (options.given.is_used() || options.wanted.is_used()) {
            let message = match is_model {
                true => {
                    "--input, --random, --output and what goes with them are for models as a whole: \
                     with --function or --arg, its functions are called as those of a program"
                }
                false => {
                    "--input, --random, --output and what goes with them are for models: functions of \
                     programs take --arg"
                }
            };
            return Err(Failure::Usage(message.to_owned()));
        }
        let ran = match is_called {
            true => {
                let model = Model::from_program(program.clone(), &self.runtime)?;
                tell_packing(&self.runtime, talk);
                profiling.begin(&self.runtime);
                self.run_model(&model).map(Some)
            }
            false => {
                let functions = self.select(&program)?;
                interrupt::listen();
                profiling.begin(&self.runtime);
                self.run_all(&functions).map(|()| None)
            }
        };
        if let Err(Failure::Usage(_)) = &ran {
            // Nothing ran.
            return ran.map(|document| (document, None));
        }
        // What was recorded tells of runs, too, that nobody wants the results of.
        let stats = profiling.end(&self.runtime, &program, input, talk)?;
        Ok((ran?, stats))
    }

    /// Says what limit on memory there is, if it has refused any.
    fn limit_on_memory(&self) -> Option<String> {
        let host = self.runtime.host();
        let max_memory = host.limits().max_memory;
        if let Some(bytes) = max_memory.filter(|_| host.memory_refusals() > 0) {
            return Some(format!("--max-memory allows {bytes} bytes at one time"));
        }
        let bytes = self.allocator.exhausted()?;
        Some(format!("--allocator has {bytes} bytes at one time"))
    }

    /// Says which limit an error is due to, and its flag.
    fn limit_behind(&self, error: &Error) -> Option<String> {
        let limits = self.runtime.host().limits();
        if *error.message() == *limits.depth_exceeded().message() {
            let max_depth = limits.max_depth;
            return Some(format!("--max-depth allows {max_depth} calls within calls"));
        }
        let max_steps = limits.max_steps;
        match max_steps.filter(|_| *error.message() == *limits.steps_exceeded().message()) {
            Some(max_steps) => Some(format!(
                "--max-steps allows {max_steps} kernels and calls in one function"
            )),
            None => self.limit_on_memory(),
        }
    }

    /// What the limit on memory has caused is no fault of the input.
    fn limited(&self, failure: Failure) -> Failure {
        let help = match &failure {
            Failure::Rejected { .. } | Failure::Usage(_) => self.limit_on_memory(),
            Failure::Open(OpenError::Constants(error))
                if error.code() == ErrorCode::ResourceExhausted =>
            {
                self.limit_behind(error)
            }
            _ => None,
        };
        match (failure, help) {
            (Failure::Rejected { message, .. } | Failure::Usage(message), Some(help)) => {
                Failure::Limited { message, help }
            }
            (Failure::Open(error), Some(help)) => Failure::LimitedOpen { error, help },
            (failure, _) => failure,
        }
    }

    /// The functions to run, in order.
    fn select(&self, program: &Program) -> Result<Vec<Function>, Failure> {
        let find = |name: &String| {
            let function = program.function(name);
            function.ok_or_else(|| no_such_function(program, name))
        };
        let mut selected: Vec<Function> = match self.options.functions.as_slice() {
            [] => program.functions().collect(),
            names => names.iter().map(find).collect::<Result<_, _>>()?,
        };
        let init = self.options.init.as_ref();
        if let Some(init) = init.and_then(|name| program.function(name)) {
            selected.retain(|function| function.name() != init.name());
            selected.insert(0, init);
        }
        let hosted: Vec<_> = selected.iter().map(Function::as_host_function).collect();
        arguments::check(&hosted, &self.options.functions, &self.options.arguments)
            .map_err(Failure::Usage)?;
        Ok(selected)
    }

    fn run_all(&mut self, functions: &[Function]) -> Result<(), Failure> {
        if functions.is_empty() {
            self.tell_nothing_to_run();
        }
        let sink: Option<Arc<dyn TraceSink>> = self.runtime.host().trace().cloned();
        let mut scope = None;
        for function in functions {
            if interrupt::is_interrupted() {
                break;
            }
            let hosted = function.as_host_function();
            let arguments = arguments::for_function(hosted, &self.options.arguments);
            let Some(arguments) = arguments.map_err(Failure::Usage)? else {
                self.document.skipped(function.name());
                self.print(&not_running_line(hosted))?;
                continue;
            };
            self.print(&running_line(hosted))?;
            // The original buffers what it traces, so that its first scope follows this line.
            if scope.is_none() {
                scope = sink
                    .as_ref()
                    .map(|sink| Scope::new(sink, Level::Default, || "Bef Executor".to_owned()));
            }
            self.run_one(function, arguments)?;
        }
        Ok(())
    }

    /// Nothing was wrong, but nothing is seen either.
    fn tell_nothing_to_run(&self) {
        let file = self.options.file.to_string_lossy();
        let document = serde_json::json!({ "schema": "tfrt.nothing-run/1", "file": file });
        self.talk.document(&document, || {
            format!("note: '{file}' has no functions to run\n")
        });
    }

    fn run_one(
        &mut self,
        function: &Function,
        arguments: Vec<AnyAsyncValue>,
    ) -> Result<(), Failure> {
        let mut context = self.runtime.context_builder();
        if let Some(deadline) = self.options.deadline {
            context = context.deadline(deadline);
        }
        let context = context.build();
        let interruptible = interrupt::Interruptible::new(&context);
        let hosted = function.as_host_function();
        let calling = self.profiling.calling(function.name());
        let print = &mut |line: &str| self.write(line);
        let called = self
            .session
            .call(hosted, context.execution(), arguments, print)
            .map_err(Failure::Output)?;
        let reason = context.request().cancellation().cloned();
        drop((interruptible, context));
        let is_interrupted = interrupt::is_interrupted();
        let outcome = self.session.end(called, reason, is_interrupted);
        self.status = self.status.max(outcome.status);
        let unheard = outcome.results.iter().filter_map(AnyAsyncValue::error);
        // The error of a result was reported, unless nothing was.
        let unheard = unheard.take(usize::from(outcome.errors.is_empty()));
        let all = outcome.errors.iter().chain(&outcome.stopped).chain(unheard);
        self.profiling.called(calling, outcome.status, all);
        let errors = outcome.errors.iter().chain(&outcome.stopped);
        let problems = Problem::merged(errors.map(|error| self.problem(error)));
        problems.iter().for_each(|problem| self.talk.tell(problem));
        self.document.ran(function, &outcome.results, problems);
        Ok(())
    }

    fn problem(&self, error: &Error) -> Problem {
        let mut problem = Problem::of_run(error);
        if error.code() == ErrorCode::ResourceExhausted {
            problem.help.extend(self.limit_behind(error));
        }
        problem
    }

    /// Prints a line, unless the results come as a document.
    fn print(&self, line: &str) -> Result<(), Failure> {
        self.write(line).map_err(Failure::Output)
    }

    fn write(&self, line: &str) -> io::Result<()> {
        match self.options.json {
            true => Ok(()),
            false => {
                // A name of a stranger's ends no line.
                if let Err(error) = write_line(&visible::name(line)) {
                    let first = self.unwritten.take().unwrap_or(error);
                    self.unwritten.set(Some(first));
                }
                Ok(())
            }
        }
    }
}
