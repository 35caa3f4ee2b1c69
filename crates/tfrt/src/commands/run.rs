//! `tfrt run`: compile if the input is text, execute its functions, report what they return.
//!
//! What is printed is what the original's `bef_executor` prints, but for the lines about the
//! allocator and the queue that it chose. Errors that kernels report are told after the line of
//! the function's results, so that the two streams keep an order when they are one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt::bef::FunctionKind;
use tfrt::codes;
use tfrt::host::Captured;
use tfrt::host::trace::{Level, Scope, TraceSink};
use tfrt::input::Input;
use tfrt::ir::similar;
use tfrt::report::{failure_line, result_line};
use tfrt::{AnyAsyncValue, Context, Error, ErrorCode, Function, Output, Program, Runtime};

use super::print_line;
use super::trace::{LineTrace, Stream};
use crate::failure::{ExitStatus, Failure};
use crate::options::{QueueOption, RunOptions};
use crate::talk::{Problem, Talk};

mod allocator;
mod arguments;
mod document;
mod errors;
mod interrupt;

use allocator::Allocator;
use document::{Document, Outcome};
use errors::Errors;

pub use document::SCHEMA;

/// How long a request that nothing can bring forward has until it is found stuck and failed.
const STUCK_GRACE: Duration = Duration::from_millis(200);

/// Runs a program and reports the allocator's findings when all of it is gone.
pub fn run(options: &RunOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let input = Input::read(&options.file)?;
    if let Input::Text(source) = &input {
        talk.remember(source);
    }
    let file = input.open()?;
    let allocator = Allocator::new(options.allocator);
    let errors = Arc::new(Errors::default());
    // A document holds what the program prints: standard output is one object and nothing else.
    let (output, printed) = match options.json {
        true => Output::captured(),
        false => (Output::standard(), Captured::default()),
    };
    let mut session = Session {
        options,
        talk,
        errors: errors.clone(),
        runtime: runtime(options, &allocator, &errors, output)?,
        document: Document::new(input.name()),
        printed,
        status: ExitStatus::Fine,
    };
    let program = Program::from_file(file, &session.runtime)?;
    let functions = session.select(&program)?;
    interrupt::listen();
    session.run_all(&functions)?;
    drop((functions, program));
    let Session {
        runtime,
        mut document,
        mut status,
        printed,
        ..
    } = session;
    if let Some(kind) = runtime.host().output().failure() {
        return Err(Failure::Output(kind.into()));
    }
    drop(runtime);
    if allocator.finish(options.json, talk)? {
        status = status.max(ExitStatus::Leaked);
    }
    if options.json {
        document.output = printed.printed();
        talk.say(&printed.logged());
        document.exit_status = status as u8;
        super::print_json(&document)?;
    }
    Ok(status)
}

fn runtime(
    options: &RunOptions,
    allocator: &Allocator,
    errors: &Arc<Errors>,
    output: Output,
) -> Result<Runtime, Failure> {
    let errors = errors.clone();
    let builder = Runtime::builder()
        .queue(options.queue.start().map_err(Failure::Host)?)
        .allocator(allocator.for_host())
        .limits(options.limits.limits())
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
    Ok(builder.build())
}

/// One run of the command.
struct Session<'a> {
    options: &'a RunOptions,
    talk: &'a Talk,
    errors: Arc<Errors>,
    runtime: Runtime,
    document: Document,
    /// What the program prints, if that goes into the document.
    printed: Captured,
    status: ExitStatus,
}

fn no_such_function(program: &Program, name: &str) -> Failure {
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

impl Session<'_> {
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
        arguments::check(&selected, self.options)?;
        Ok(selected)
    }

    fn run_all(&mut self, functions: &[Function]) -> Result<(), Failure> {
        let sink: Option<Arc<dyn TraceSink>> = self.runtime.host().trace().cloned();
        let mut scope = None;
        for function in functions {
            if interrupt::is_interrupted() {
                break;
            }
            let Some(arguments) = arguments::for_function(function, self.options)? else {
                self.skip(function)?;
                continue;
            };
            self.print(&format!("--- Running '{}':", function.name()))?;
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

    fn skip(&mut self, function: &Function) -> Result<(), Failure> {
        let name = function.name();
        self.document.skipped(name);
        self.print(&format!(
            "--- Not running '{name}' because it has arguments."
        ))
    }

    fn run_one(
        &mut self,
        function: &Function,
        arguments: Vec<AnyAsyncValue>,
    ) -> Result<(), Failure> {
        let cells_before = tfrt::asynchronous::counters().live_cells;
        let mut context = self.runtime.context_builder();
        if let Some(deadline) = self.options.deadline {
            context = context.deadline(deadline);
        }
        let context = context.build();
        let interruptible = interrupt::Interruptible::new(&context);
        let outcome = match function.as_host_function().kind() {
            FunctionKind::Sync => self.run_in_order(function, &context, &arguments)?,
            _ => self.run_as_dataflow(function, &context, arguments)?,
        };
        let reason = context.request().cancellation().cloned();
        drop((interruptible, context));
        self.settle(cells_before);
        self.judge(&outcome, reason.as_ref());
        let heard = self.errors.take();
        heard.iter().for_each(|error| self.tell(error));
        // Without results nothing else would say why the function was stopped.
        let stopped = |reason: &&Error| {
            let code = reason.code();
            code == ErrorCode::DeadlineExceeded || code == ErrorCode::ResourceExhausted
        };
        if let Some(reason) = reason
            .as_ref()
            .filter(stopped)
            .filter(|_| outcome.is_empty())
        {
            self.tell(reason);
        }
        self.document.ran(function, &outcome, &heard);
        Ok(())
    }

    fn run_in_order(
        &self,
        function: &Function,
        context: &Context,
        arguments: &[AnyAsyncValue],
    ) -> Result<Outcome, Failure> {
        let outcome = function
            .as_host_function()
            .run_synchronously(context.execution(), arguments);
        match &outcome {
            Ok(results) => self.print_results(function, results)?,
            Err(error) => self.print(&failure_line(function.name(), error))?,
        }
        Ok(outcome.unwrap_or_else(|error| vec![AnyAsyncValue::from_error(error)]))
    }

    fn run_as_dataflow(
        &self,
        function: &Function,
        context: &Context,
        arguments: Vec<AnyAsyncValue>,
    ) -> Result<Outcome, Failure> {
        let results = function.call(context, arguments).wait_each();
        let results = results.expect("this thread is no worker");
        // On one thread the order of the original is kept. On many there is none between results
        // and effects that they do not wait for; people expect to see the effects first.
        if self.options.queue != QueueOption::Single {
            self.quiesce();
        }
        self.print_results(function, &results)?;
        self.quiesce();
        Ok(results)
    }

    fn print_results(&self, function: &Function, results: &[AnyAsyncValue]) -> Result<(), Failure> {
        let codes = self.options.print_error_code;
        match result_line(function.name(), function.result_types(), results, codes) {
            Some(line) => self.print(&line),
            None => Ok(()),
        }
    }

    /// Waits until nothing is queued or running, and no timer of a kernel is pending.
    fn quiesce(&self) {
        loop {
            self.runtime.quiesce().expect("this thread is no worker");
            if self.runtime.host().timers().pending() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Gives kernels that never resolve a result which nobody has waited for the time to be found
    /// stuck, so that they are told of too.
    fn settle(&self, cells_before: u64) {
        let until = Instant::now() + STUCK_GRACE;
        while tfrt::asynchronous::counters().live_cells > cells_before && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
            self.quiesce();
        }
    }

    /// Finds what the outcome of a function means for the exit status.
    fn judge(&mut self, outcome: &Outcome, reason: Option<&Error>) {
        // What a kernel cancels is an error like any other; we set a deadline and hear of Ctrl-C.
        let stopped = interrupt::is_interrupted()
            || reason.is_some_and(|reason| reason.code() == ErrorCode::DeadlineExceeded);
        let is_limit = |error: &Error| error.code() == ErrorCode::ResourceExhausted;
        let failed = || outcome.iter().filter_map(AnyAsyncValue::error);
        let status = if reason.is_some_and(is_limit)
            || failed().any(is_limit)
            || self.errors.any(is_limit)
        {
            ExitStatus::LimitExceeded
        } else if stopped {
            ExitStatus::Cancelled
        } else if failed().next().is_some() || (outcome.is_empty() && self.errors.any(|_| true)) {
            // A function without results has no other way to return what its kernels report.
            ExitStatus::FunctionFailed
        } else {
            ExitStatus::Fine
        };
        self.status = self.status.max(status);
    }

    fn tell(&self, error: &Error) {
        self.talk.tell(&Problem::of_run(error));
    }

    /// Prints a line, unless the results come as a document.
    fn print(&self, line: &str) -> Result<(), Failure> {
        if self.options.json {
            return Ok(());
        }
        print_line(line)
    }
}
