//! `tfrt run`: compile if the input is text, execute its functions, report what they return.
//!
//! The output is what the original's `bef_executor` prints, but for the lines about the allocator and the queue that it
//! chose. Errors that kernels report are told after the line of the function's results, so that the two streams keep an
//! order when they are one.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tfrt::codes;
use tfrt::host::CapturedOutput;
use tfrt::host::trace::{TraceLevel, TraceSink, TraceSpan};
use tfrt::input::Input;
use tfrt::ir::{similar, visible};
use tfrt::kernels::graph::stored::repacked;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{
    AnyAsyncValue, Context, Error, ErrorCode, Function, Model, OpenError, OpenOptions, Output,
    Placements, Program, Runtime, Warnings,
};
use tfrt_run::report::unless_unread;
use tfrt_run::{Errors, Session, arguments, not_running_line, running_line};

use super::devices::{DeviceOption, UNPLACED, placement_document, placement_text};
use super::limits::{Exceeded, refuse_compiled};
use super::output::Delivery;
use super::trace::{LineTrace, Stream};
use super::{check, print_json, rejection, write_line};
use crate::console::{Console, Problem};
use crate::failure::{ExitStatus, Failure, LimitReached};
use crate::options::{LimitOptions, RunOptions};

mod allocator;
mod batch;
mod document;
mod escaped_output;
mod expect;
mod interrupt;
mod model;
#[cfg(all(feature = "dist", target_os = "linux"))]
mod processes;
mod profiling;
mod sampler;
mod save;
mod stats;
mod steps;
mod watchdog;

use allocator::Allocator;
use document::Document;
use profiling::Profiling;
use stats::Stats;
use watchdog::Watchdog;

pub use document::SCHEMA;
pub use model::SCHEMA as MODEL_SCHEMA;

/// Runs a model or a program: reads, compiles and loads it, calls its functions, and reports their results. What
/// ends this early is a [`LimitReached`](crate::failure::LimitReached).
pub fn run(options: &RunOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let limits = &options.limits;
    #[cfg(feature = "dist")]
    let plan = super::member::plan_of_run(&options.member)?;
    #[cfg(feature = "dist")]
    if let Some(plan) = plan.as_ref().filter(|plan| !plan.leads()) {
        return super::worker::serve(plan, options.queue, options.trace.as_deref(), console);
    }
    if limits.untrusted {
        console.read_no_files();
    }
    let say = |failure: &Failure| say_why(failure, options, console);
    let max_time = limits.untrusted().map(|untrusted| untrusted.max_time);
    #[cfg(feature = "dist")]
    let meets = Cell::new(false);
    let ended = watchdog::watched(max_time, interrupt::note(console), say, |watchdog| {
        let input = read(options, limits, console)?;
        let mut run = Run::new(&input, options, limits, watchdog, console)?;
        #[cfg(feature = "dist")]
        if let Some(config) = plan.as_ref().and_then(|plan| plan.config()) {
            let now_ns = tfrt::dist::probe::now_ns();
            run.profiling.set_task(config, now_ns);
        }
        let program = run.load(&input);
        // A program that does not run is not waited for by others: they do not meet this task.
        #[cfg(feature = "dist")]
        if let (Some(plan), Ok(program)) = (&plan, &program) {
            run.check_is_program(program)?;
            meets.set(true);
            let joining = plan.listen(&run.runtime, console)?;
            run.join(joining)?;
        }
        let called = program
            .and_then(|program| run.call(program, input))
            .map_err(|failure| run.exceeded().failure(failure))?;
        // The other tasks are told before reports are written.
        #[cfg(feature = "dist")]
        drop(run.membership.take());
        run.report(called)
    });
    #[cfg(feature = "dist")]
    if let (Some(plan), Err(failure), false) = (&plan, &ended, meets.get()) {
        plan.give_up(failure);
    }
    ended
}

/// Says why the process is ended, also in the document that was asked for.
fn say_why(failure: &Failure, options: &RunOptions, console: &Console) {
    console.failure(failure);
    if let Err(unwritten) = rejection::of_run(options, failure, console) {
        console.failure(&unwritten);
    }
}

/// Reads the file, and remembers its text for messages.
fn read(options: &RunOptions, limits: &LimitOptions, console: &Console) -> Result<Input, Failure> {
    let input = limits.read(&options.file, options.input.mmap)?;
    if let Input::Text(source) = &input {
        console.remember(source);
    }
    if matches!(input, Input::Model { .. }) && !options.calls_functions() {
        console.about_model();
    }
    refuse_compiled(&input, &options.dims, options.no_optimize)?;
    Ok(input)
}

/// Returns how many bytes a program may print that are kept for a document, where a character may take six.
fn max_printed(limits: &LimitOptions) -> usize {
    let max_memory = limits.limits().max_memory;
    max_memory.map_or(usize::MAX, |bytes| bytes / 8)
}

/// Makes the runtime that the command line asks for.
fn runtime(
    options: &RunOptions,
    limits: &LimitOptions,
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
    #[cfg(feature = "plugins")]
    let builder = {
        let plugins = super::plugin::load_used(&options.plugins)?;
        super::plugin::add_used(&options.plugins, &plugins, builder)?
    };
    let builder = match &options.device {
        Some(device) => device.kernels(builder),
        None => builder,
    };
    Ok(limits.limit(builder).build())
}

/// One run of the command, from the file that was read to the report.
struct Run<'a> {
    options: &'a RunOptions,
    limits: &'a LimitOptions,
    watchdog: &'a Watchdog,
    console: &'a Console,
    profiling: Profiling,
    allocator: Allocator,
    /// The files that the program was read from, and the labels: nothing is written over them.
    files_read: Vec<PathBuf>,
    session: Session,
    /// The other tasks that the program runs on.
    #[cfg(feature = "dist")]
    membership: Option<tfrt::dist::join::Membership>,
    runtime: Runtime,
    /// The simulated driver that programs got.
    #[cfg(feature = "gpu")]
    simulated: Option<tfrt::gpu::driver::sim::Sim>,
    document: Document,
    /// The program's standard output, if it goes into the document.
    printed: CapturedOutput,
    status: ExitStatus,
    /// The help of an error of the model, if sizes of its inputs were guessed.
    advice: Option<String>,
    /// The first error of writing to standard output.
    output_error: Cell<Option<io::Error>>,
    /// Files and standard output that are written in the end.
    delivery: Delivery,
}

/// The result of calls that have ended.
struct Called {
    /// The report on a model that was called as a whole.
    model: Option<model::Document>,
    /// The report on time and memory, if it was asked for.
    stats: Option<Stats>,
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

/// Tells that weights were packed for another processor, so that opening the model took longer.
fn tell_packing(runtime: &Runtime, console: &Console) {
    let ours = InstructionSet::best().name();
    for set in repacked(runtime.host()) {
        let document = serde_json::json!({
            "schema": "tfrt.laid-again/1", "packed_for": set, "laid_out_for": ours,
        });
        console.document(&document, || {
            format!(
                "note: weights were packed for {set} and laid out again for {ours}: `tfrt compile` on this \
                 processor saves that\n"
            )
        });
    }
}

/// Refuses a driver of GPUs for a model that runs on none.
#[cfg(feature = "gpu")]
pub(super) fn refuse_driver_without_gpu(
    has_driver: bool,
    device: Option<&DeviceOption>,
) -> Result<(), Failure> {
    if !has_driver || device.is_some_and(|device| device.name().is_some()) {
        return Ok(());
    }
    let message = "--gpu-driver names the driver of --device gpu:N, and of programs that drive a GPU themselves: \
                   without a GPU as device the model would run on the processor";
    Err(Failure::Usage(message.to_owned()))
}

/// Refuses options for models where functions are called, which take `--arg`.
fn refuse_options_of_models(options: &RunOptions, is_model: bool) -> Result<(), Failure> {
    let is_used = options.input.is_used()
        || options.state.is_used()
        || options.output.is_used()
        || !options.dims.dims.is_empty();
    let message = match is_model {
        _ if !is_used => return Ok(()),
        true => {
            "--input, --random, --output and what goes with them are for models as a whole: \
             with --function or --arg, its functions are called as those of a program"
        }
        false => {
            "--input, --random, --output and what goes with them are for models: functions of \
             programs take --arg"
        }
    };
    Err(Failure::Usage(message.to_owned()))
}

impl<'a> Run<'a> {
    /// Sets up the runtime, and refuses to write over files that are read.
    fn new(
        input: &Input,
        options: &'a RunOptions,
        limits: &'a LimitOptions,
        watchdog: &'a Watchdog,
        console: &'a Console,
    ) -> Result<Run<'a>, Failure> {
        let mut files_read = vec![options.file.clone()];
        files_read.extend(options.output.labels.clone());
        let profiling = Profiling::new(options, input, &files_read)?;
        let allocator = Allocator::new(options.allocator);
        let errors = Arc::new(Errors::default());
        // A document holds what the program prints: standard output is one object and nothing else.
        let (output, printed) = match options.json {
            true => Output::captured_within(max_printed(limits)),
            false if limits.untrusted => (escaped_output::output(), CapturedOutput::default()),
            false => (Output::standard(), CapturedOutput::default()),
        };
        let runtime = runtime(options, limits, &allocator, &errors, output, &profiling)?;
        #[cfg(feature = "gpu")]
        let simulated = options.gpu_driver.as_ref();
        #[cfg(feature = "gpu")]
        let simulated = simulated.and_then(|driver| driver.give_to(&runtime));
        if let Some(device) = &options.device {
            device.add_to(&runtime, options.max_device_memory)?;
        }
        #[cfg(feature = "gpu")]
        if options.no_gpu_graphs {
            tfrt::gpu::use_graphs(runtime.host(), false);
        }
        #[cfg(all(feature = "dist", target_os = "linux"))]
        processes::use_if_asked(runtime.host());
        let session = Session {
            host: runtime.host().clone(),
            queue: options.queue,
            errors,
            print_error_code: options.print_error_code,
        };
        Ok(Run {
            options,
            limits,
            watchdog,
            console,
            profiling,
            allocator,
            files_read,
            session,
            #[cfg(feature = "dist")]
            membership: None,
            runtime,
            #[cfg(feature = "gpu")]
            simulated,
            document: Document::new(input.name()),
            printed,
            status: ExitStatus::Fine,
            advice: None,
            output_error: Cell::new(None),
            delivery: Delivery::default(),
        })
    }

    /// Compiles and loads what was read, and tells of warnings and of operations that have no kernel.
    fn load(&self, input: &Input) -> Result<Program, Failure> {
        let (options, console) = (self.options, self.console);
        let opening = &self.opening();
        let progress = console.progress(&format!("compiling {}", input.name()));
        let warnings = Warnings::default();
        let placements = Placements::default();
        let warned = opening.clone().warnings(warnings.clone());
        let warned = warned.placements(placements.clone());
        let loaded = self.limits.load(input, &warned, &self.runtime, console);
        drop(progress);
        console.diagnostics(&warnings.take());
        let reports = placements.take();
        for report in reports.iter().filter(|_| loaded.is_ok()) {
            let text = || format!("note: {}", placement_text(report));
            console.document(&placement_document(report), text);
        }
        let is_for_device = options.strict_device && opening.device_name().is_some();
        if loaded.is_ok() && is_for_device && reports.is_empty() {
            return Err(Failure::Open(OpenError::Device(UNPLACED.to_owned())));
        }
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
            console.about_model();
        }
        loaded.map_err(|error| {
            let missing = matches!(error, OpenError::Load(_)).then(|| {
                check::told_if_missing(input, opening, &self.runtime, options.json, console)
            });
            missing.flatten().unwrap_or(Failure::Open(error))
        })
    }

    /// Refuses a model where several tasks are to run it.
    #[cfg(feature = "dist")]
    fn check_is_program(&self, program: &Program) -> Result<(), Failure> {
        if is_model(program) && !self.options.calls_functions() {
            let message = "--cluster is for programs: a model is run by one task";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(())
    }

    /// Meets the other tasks.
    #[cfg(feature = "dist")]
    fn join(&mut self, joining: tfrt::dist::join::Joining) -> Result<(), Failure> {
        let joined = joining.join();
        self.membership = Some(joined.map_err(|error| super::member::refused(&error))?);
        Ok(())
    }

    /// Returns the context of a call of a program.
    fn context(&self) -> Context {
        let context = self.runtime.context_builder();
        #[cfg(feature = "dist")]
        let context = match &self.membership {
            Some(membership) => context.data(membership.context().clone()),
            None => context,
        };
        self.limits.context_of(context)
    }

    /// Returns the options by which the program is opened.
    fn opening(&self) -> OpenOptions {
        let options = self.options;
        let opening = options.dims.open_options(!options.no_optimize);
        match options.device.as_ref().and_then(DeviceOption::name) {
            Some(name) => opening.device(&name).strict_device(options.strict_device),
            None => opening,
        }
    }

    /// Calls the model, or the functions of the program that were asked for.
    fn call(&mut self, program: Program, input: Input) -> Result<Called, Failure> {
        self.files_read.extend(input.files_beside());
        self.profiling.check(&self.files_read)?;
        let is_model = is_model(&program);
        let (program, model) = match is_model && !self.options.calls_functions() {
            true => {
                #[cfg(feature = "gpu")]
                refuse_driver_without_gpu(
                    self.options.gpu_driver.is_some(),
                    self.options.device.as_ref(),
                )?;
                let opening = self.opening();
                let model = Model::from_program_with(program, &input, &opening, &self.runtime)?;
                // A model holds what it was read from no longer.
                drop(input);
                tell_packing(&self.runtime, self.console);
                self.profiling.begin_run(&self.runtime);
                let document = self.run_model(&model)?;
                (model.program().clone(), Some(document))
            }
            false => {
                refuse_options_of_models(self.options, is_model)?;
                let functions = self.select(&program)?;
                interrupt::begin_calls();
                self.profiling.begin_run(&self.runtime);
                self.run_all(&functions)?;
                (program, None)
            }
        };
        let (console, delivery) = (self.console, &mut self.delivery);
        let stats = self
            .profiling
            .end_run(&self.runtime, &program, console, delivery)?;
        // A program says itself which texts it was made of: pages and messages show them.
        delivery.refuse(&console.files_read())?;
        delivery.send()?;
        Ok(Called { model, stats })
    }

    /// Returns why standard output could not be written, unless nobody reads it any more.
    ///
    /// # Errors
    ///
    /// `Limited` if the program prints more than its document may hold.
    fn output_failure(&self) -> Result<Option<Failure>, Failure> {
        let failure = self.runtime.host().output().failure();
        if self.options.json && failure == Some(io::ErrorKind::StorageFull) {
            return Err(LimitReached::Printed(max_printed(self.limits)).into());
        }
        let failure = failure.map_or(Ok(()), |kind| Err(kind.into()));
        let printed = self.output_error.take().map_or(failure, Err);
        Ok(unless_unread(printed).err().map(Failure::Output))
    }

    /// Frees the program, and reports on its run: leaks, statistics, the document, files. Returns the exit status.
    fn report(self, called: Called) -> Result<ExitStatus, Failure> {
        let output_failure = self.output_failure()?;
        let Run {
            options,
            limits,
            console,
            allocator,
            session,
            runtime,
            #[cfg(feature = "gpu")]
            simulated,
            document,
            printed,
            mut status,
            delivery,
            ..
        } = self;
        if let Some(failure) = &output_failure {
            // The status says what came of the program all the same.
            console.failure(failure);
            status = status.max(failure.status());
        }
        drop((session, runtime));
        #[cfg(feature = "gpu")]
        if let Some(sim) = &simulated {
            status = status.max(super::devices::driver::tell(sim, console));
        }
        if allocator.finish(options.json, console)? {
            status = status.max(ExitStatus::Leaked);
        }
        let Called { model, stats } = called;
        if !options.json {
            if let Some(stats) = &stats {
                console.document(stats, || stats.table());
            }
        } else if console.begin_document() {
            match limits.untrusted {
                true => console.say(&visible::text(&printed.logged())),
                false => console.say(&printed.logged()),
            }
            let (output, exit_status) = (printed.printed(), status as u8);
            match model {
                Some(model) => print_json(&model.ended(output, stats, exit_status))?,
                None => print_json(&document.ended(output, stats, exit_status))?,
            }
        }
        if output_failure.is_none() {
            let written = delivery.finish()?;
            written.iter().for_each(|written| written.tell(console));
        }
        Ok(status)
    }

    /// Returns the limits of this run, to find the one that is behind an error.
    fn exceeded(&self) -> Exceeded<'_> {
        Exceeded {
            host: self.runtime.host(),
            exhausted: self.allocator.exhausted(),
        }
    }

    /// Returns the functions to run, in order.
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
                scope = sink.as_ref().map(|sink| {
                    TraceSpan::new(sink, TraceLevel::Default, || "Bef Executor".to_owned())
                });
            }
            self.run_one(function, arguments)?;
        }
        interrupt::end_calls();
        Ok(())
    }

    /// Tells that there are no functions to run.
    fn tell_nothing_to_run(&self) {
        let file = self.options.file.to_string_lossy();
        let document = serde_json::json!({ "schema": "tfrt.nothing-run/1", "file": file });
        self.console.document(&document, || {
            format!("note: '{file}' has no functions to run\n")
        });
    }

    fn run_one(
        &mut self,
        function: &Function,
        arguments: Vec<AnyAsyncValue>,
    ) -> Result<(), Failure> {
        let context = self.context();
        let watched = self.watchdog.watch_call(&context, self.limits.deadline);
        let hosted = function.as_host_function();
        let timer = self.profiling.begin_call(function.name());
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
        self.profiling.end_call(timer, outcome.status, all);
        let errors = outcome.errors.iter().chain(&outcome.stopped);
        let problems = Problem::merged(errors.map(|error| self.problem(error)));
        problems
            .iter()
            .for_each(|problem| self.console.tell(problem));
        self.document.ran(function, &outcome.results, problems);
        Ok(())
    }

    fn problem(&self, error: &Error) -> Problem {
        let mut problem = Problem::of_run(error);
        let limit = self.exceeded().error(error);
        match limit {
            Some(limit) => problem.help.extend(limit.help()),
            None if error.code() != ErrorCode::InvalidArgument => {}
            None => problem.help.extend(self.advice.clone()),
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
                    let first = self.output_error.take().unwrap_or(error);
                    self.output_error.set(Some(first));
                }
                Ok(())
            }
        }
    }
}
