//! `tfrt run`: compile if the input is text, execute its functions, report what they return.
//!
//! What is printed is what the original's `bef_executor` prints, but for the lines about the
//! allocator and the queue that it chose. Errors that kernels report are told after the line of
//! the function's results, so that the two streams keep an order when they are one.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tfrt::codes;
use tfrt::host::Captured;
use tfrt::host::trace::{Level, Scope, TraceSink};
use tfrt::input::Input;
use tfrt::ir::{similar, visible};
use tfrt::kernels::graph::stored::laid_again;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{
    AnyAsyncValue, Error, Function, Model, OpenError, OpenOptions, Output, Program, Runtime,
    Warnings,
};
use tfrt_run::report::unless_unread;
use tfrt_run::{Errors, Session, arguments, not_running_line, running_line};

use super::limits::{Exceeded, refuse_compiled};
use super::output::Delivery;
use super::trace::{LineTrace, Stream};
use super::{check, print_json, rejection, write_line};
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
use ending::Watch;
use profiling::Profiling;
use stats::Stats;

pub use document::SCHEMA;
pub use model::SCHEMA as MODEL_SCHEMA;

/// Runs a program and reports the allocator's findings when all of it is gone.
pub fn run(options: &RunOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let untrusted = options.limits.untrusted();
    if untrusted.is_some() {
        talk.read_no_files();
    }
    let say = |failure: &Failure| {
        talk.failure(failure);
        if let Err(unwritten) = rejection::of_run(options, failure, talk) {
            talk.failure(&unwritten);
        }
    };
    let document = serde_json::json!({ "schema": "tfrt.interrupted/1" });
    let note = talk.text_of(&document, || {
        "note: interrupted: what runs is being stopped; another Ctrl-C ends the command at once\n"
            .to_owned()
    });
    let whole = untrusted.map(|untrusted| untrusted.max_time);
    ending::watched(whole, note, say, |watch| run_to_end(options, watch, talk))
}

fn run_to_end(options: &RunOptions, watch: &Watch, talk: &Talk) -> Result<ExitStatus, Failure> {
    let input = options.limits.read(&options.file, options.given.mmap)?;
    if let Input::Text(source) = &input {
        talk.remember(source);
    }
    if matches!(input, Input::Model { .. }) && !options.calls_functions() {
        talk.about_model();
    }
    refuse_compiled(&input, options.no_optimize)?;
    let mut read = vec![options.file.clone()];
    read.extend(options.wanted.labels.clone());
    let profiling = Profiling::new(options, &input, &read)?;
    let allocator = Allocator::new(options.allocator);
    let errors = Arc::new(Errors::default());
    // A document holds what the program prints: standard output is one object and nothing else.
    let (output, printed) = match options.json {
        true => Output::captured_within(max_printed(options)),
        false if options.limits.untrusted => (printed::output(), Captured::default()),
        false => (Output::standard(), Captured::default()),
    };
    let runtime = runtime(options, &allocator, &errors, output, &profiling)?;
    let session = Session {
        host: runtime.host().clone(),
        queue: options.queue,
        errors,
        print_error_code: options.print_error_code,
    };
    let mut run = Run {
        options,
        read,
        watch,
        profiling: &profiling,
        allocator: &allocator,
        talk,
        session,
        runtime,
        document: Document::new(input.name()),
        printed,
        status: ExitStatus::Fine,
        unwritten: Cell::new(None),
        delivery: Delivery::default(),
    };
    let (of_model, stats) = run
        .run_input(input)
        .map_err(|failure| run.exceeded().failure(failure))?;
    let Run {
        runtime,
        session,
        document,
        mut status,
        printed,
        unwritten,
        delivery,
        ..
    } = run;
    let failure = runtime.host().output().failure();
    if options.json && failure == Some(io::ErrorKind::StorageFull) {
        return Err(prints_too_much(options));
    }
    let failure = failure.map_or(Ok(()), |kind| Err(kind.into()));
    let printed_all = unless_unread(unwritten.take().map_or(failure, Err)).map_err(Failure::Output);
    if let Err(failure) = &printed_all {
        // The status says what came of the program all the same.
        talk.failure(failure);
        status = status.max(failure.status());
    }
    drop((session, runtime));
    if allocator.finish(options.json, talk)? {
        status = status.max(ExitStatus::Leaked);
    }
    if !options.json {
        if let Some(stats) = &stats {
            talk.document(stats, || stats.table());
        }
    } else if talk.begin_document() {
        match options.limits.untrusted {
            true => talk.say(&visible::text(&printed.logged())),
            false => talk.say(&printed.logged()),
        }
        let (output, exit_status) = (printed.printed(), status as u8);
        match of_model {
            Some(model) => print_json(&model.ended(output, stats, exit_status))?,
            None => print_json(&document.ended(output, stats, exit_status))?,
        }
    }
    if printed_all.is_ok() {
        let written = delivery.finish()?;
        written.iter().for_each(|written| written.tell(talk));
    }
    Ok(status)
}

fn prints_too_much(options: &RunOptions) -> Failure {
    let n_bytes = max_printed(options);
    Failure::Limited {
        message: format!("with --json, a program may print {n_bytes} bytes, and this prints more"),
        help: "that is an eighth of what --max-memory allows".to_owned(),
    }
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
    Ok(options.limits.limit(builder).build())
}

/// One run of the command.
struct Run<'a> {
    options: &'a RunOptions,
    /// The files that the program was read from, and the labels.
    read: Vec<PathBuf>,
    watch: &'a Watch,
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
    /// What is written in the end.
    delivery: Delivery,
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

fn is_model(program: &Program) -> bool {
    program.as_host_program().file().model().is_some()
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
    /// Opens what was read and runs what of it was asked for. Returns the report of a model, and where the time went.
    fn run_input(
        &mut self,
        input: Input,
    ) -> Result<(Option<model::Document>, Option<Stats>), Failure> {
        let options = self.options;
        let opening = options.dims.open_options(!options.no_optimize);
        let program = self.load(&input, &opening)?;
        self.read.extend(input.files_beside());
        self.profiling.check(&self.read)?;
        let is_model = is_model(&program);
        let is_called = is_model && !options.calls_functions();
        let is_for_models = options.given.is_used() || options.wanted.is_used();
        if !is_called && (is_for_models || !options.dims.dims.is_empty()) {
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
        let (program, document) = match is_called {
            true => {
                let model = Model::from_program_with(program, &input, &opening, &self.runtime)?;
                // A model holds what it was read from no longer.
                drop(input);
                tell_packing(&self.runtime, self.talk);
                self.profiling.begin(&self.runtime);
                let document = self.run_model(&model)?;
                (model.program().clone(), Some(document))
            }
            false => {
                let functions = self.select(&program)?;
                interrupt::begin();
                self.profiling.begin(&self.runtime);
                self.run_all(&functions)?;
                (program, None)
            }
        };
        let (talk, delivery) = (self.talk, &mut self.delivery);
        let stats = self
            .profiling
            .end(&self.runtime, &program, talk, delivery)?;
        // A program says itself which texts it was made of: pages and messages show them.
        delivery.refuse(&talk.files_read())?;
        delivery.send()?;
        Ok((document, stats))
    }

    /// Opens what was read, and tells of warnings and of operations that have no kernel.
    fn load(&self, input: &Input, opening: &OpenOptions) -> Result<Program, Failure> {
        let (options, talk) = (self.options, self.talk);
        let waiting = talk.waiting(&format!("compiling {}", input.name()));
        let warnings = Warnings::default();
        let warned = opening.clone().warnings(warnings.clone());
        let loaded = options.limits.load(input, &warned, &self.runtime, talk);
        drop(waiting);
        talk.diagnostics(&warnings.take());
        let is_model = match (&loaded, input) {
            (Ok(program), _) => is_model(program),
            // What was compiled before tells it, though it can't be loaded.
            (Err(OpenError::Load(_)), Input::Bytes { .. }) => {
                let opened = input.open();
                opened.is_ok_and(|file| file.model().is_some())
            }
            _ => false,
        };
        if is_model && !options.calls_functions() {
            talk.about_model();
        }
        loaded.map_err(|error| {
            let missing = matches!(error, OpenError::Load(_))
                .then(|| check::told_if_missing(input, opening, &self.runtime, options.json, talk));
            missing.flatten().unwrap_or(Failure::Open(error))
        })
    }

    /// What may have refused memory.
    fn exceeded(&self) -> Exceeded<'_> {
        Exceeded {
            host: self.runtime.host(),
            exhausted: self.allocator.exhausted(),
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
                self.status = self.status.max(ExitStatus::Cancelled);
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
        interrupt::over();
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
        let limits = &self.options.limits;
        let context = limits.context(&self.runtime);
        let watched = self.watch.calling(&context, limits.deadline);
        let hosted = function.as_host_function();
        let calling = self.profiling.calling(function.name());
        let print = &mut |line: &str| self.write(line);
        let called = self
            .session
            .call(hosted, context.execution(), arguments, print)
            .map_err(Failure::Output)?;
        let reason = context.request().cancellation().cloned();
        drop((watched, context));
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
        problem.help.extend(self.exceeded().error(error));
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
