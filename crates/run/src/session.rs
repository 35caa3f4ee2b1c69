//! [`Session`]: the calls of a command, one after the other, with their outcomes.
//!
//! What is printed is what the original's `bef_executor` prints. Effects and results keep an order
//! on standard output, and errors are told after the line of the function's results.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_host::{
    AnyAsyncValue, Error, ErrorCode, ExecutionContext, Function, FunctionKind, HostContext, Limits,
};

use crate::errors::Errors;
use crate::exit::ExitStatus;
use crate::queue::QueueOption;
use crate::report::{failure_line, result_line};

/// The time that a request which nothing can bring forward has until it is found stuck and failed.
const STUCK_GRACE: Duration = Duration::from_millis(200);

/// A function that prints a line on standard output.
pub type Print<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

/// The environment of one command's calls.
#[derive(Debug)]
pub struct Session {
    /// The host of the functions.
    pub host: HostContext,
    /// The queue of the host.
    pub queue: QueueOption,
    /// The errors that the host's diagnostic handler hears.
    pub errors: Arc<Errors>,
    /// Whether results show the codes of errors.
    pub print_error_code: bool,
}

/// A call whose results are settled.
#[derive(Debug)]
#[must_use = "a call ends with `Session::end`"]
pub struct FinishedCall {
    results: Vec<AnyAsyncValue>,
    open_before: usize,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct Outcome {
    /// The results: settled, each a value or an error.
    pub results: Vec<AnyAsyncValue>,
    /// The errors that kernels reported.
    pub errors: Vec<Error>,
    /// The reason why the call was stopped, where no result says so, or by which limit.
    pub stopped: Option<Error>,
    /// The exit status that the call leads to.
    pub status: ExitStatus,
}

/// Returns the line before a function's own.
pub fn running_line(function: &Function) -> String {
    format!("--- Running '{}':", function.name())
}

/// Returns the line in place of a function that can't be called.
pub fn not_running_line(function: &Function) -> String {
    let name = function.name();
    format!("--- Not running '{name}' because it has arguments.")
}

impl Session {
    /// Calls a function and prints its results.
    ///
    /// # Errors
    ///
    /// Those of `print`.
    pub fn call(
        &self,
        function: &Function,
        context: &ExecutionContext,
        arguments: Vec<AnyAsyncValue>,
        print: Print<'_>,
    ) -> io::Result<FinishedCall> {
        let open_before = self.host.n_open_calls();
        let results = match function.kind() {
            FunctionKind::Sync => self.run_in_order(function, context, &arguments, print)?,
            _ => self.run_as_dataflow(function, context, arguments, print)?,
        };
        Ok(FinishedCall {
            results,
            open_before,
        })
    }

    /// Makes calls by a function that waits for them itself and returns what they leave, as one call with these results.
    pub fn call_by(&self, make: impl FnOnce() -> Vec<AnyAsyncValue>) -> FinishedCall {
        let open_before = self.host.n_open_calls();
        let results = make();
        self.quiesce();
        FinishedCall {
            results,
            open_before,
        }
    }

    /// Ends a call, whose request the caller has given back, and judges its outcome; `reason` is the error by which it
    /// was cancelled.
    pub fn end(
        &self,
        called: FinishedCall,
        reason: Option<Error>,
        is_interrupted: bool,
    ) -> Outcome {
        let results = called.results;
        self.settle(called.open_before);
        let status = self.judge(&results, reason.as_ref(), is_interrupted);
        // Where no result says why the function was stopped, nothing else would; that it was a limit is said besides.
        let is_told = results.iter().any(|result| result.error().is_some());
        let stopped = reason.filter(|reason| {
            let code = reason.code();
            let is_time = is_interrupted || code == ErrorCode::DeadlineExceeded;
            code == ErrorCode::ResourceExhausted || (is_time && !is_told)
        });
        Outcome {
            results,
            errors: self.errors.take(),
            stopped,
            status,
        }
    }

    fn run_in_order(
        &self,
        function: &Function,
        context: &ExecutionContext,
        arguments: &[AnyAsyncValue],
        print: Print<'_>,
    ) -> io::Result<Vec<AnyAsyncValue>> {
        let outcome = function.run_synchronously(context, arguments);
        match &outcome {
            Ok(results) => self.print_results(function, results, print)?,
            Err(error) => print(&failure_line(function.name(), error))?,
        }
        Ok(outcome.unwrap_or_else(|error| vec![AnyAsyncValue::from_error(error)]))
    }

    fn run_as_dataflow(
        &self,
        function: &Function,
        context: &ExecutionContext,
        arguments: Vec<AnyAsyncValue>,
        print: Print<'_>,
    ) -> io::Result<Vec<AnyAsyncValue>> {
        let results = function.execute(context, arguments);
        let waited = context.queue().await_all(&results);
        waited.expect("this thread is no worker");
        let results: Vec<_> = results.into_iter().map(AnyAsyncValue::settled).collect();
        // On one thread the order of the original is kept. On many there is none between results
        // and effects that they do not wait for; people expect to see the effects first.
        if self.queue != QueueOption::Single {
            self.quiesce();
        }
        self.print_results(function, &results, print)?;
        self.quiesce();
        Ok(results)
    }

    fn print_results(
        &self,
        function: &Function,
        results: &[AnyAsyncValue],
        print: Print<'_>,
    ) -> io::Result<()> {
        let codes = self.print_error_code;
        match result_line(function.name(), function.result_types(), results, codes) {
            Some(line) => print(&line),
            None => Ok(()),
        }
    }

    /// Waits until nothing is queued or running, and no timer of a kernel is pending.
    pub fn quiesce(&self) {
        loop {
            let quiet = self.host.queue().quiesce();
            quiet.expect("this thread is no worker");
            if self.host.timers().pending() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Gives what a call has left open the time to end: calls that were stopped, and kernels that never resolve a result
    /// which nobody has waited for, which are found stuck and told of.
    fn settle(&self, open_before: usize) {
        let until = Instant::now() + STUCK_GRACE;
        while self.host.n_open_calls() > open_before && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
            self.quiesce();
        }
    }

    /// Returns the exit status that a call leads to.
    fn judge(
        &self,
        results: &[AnyAsyncValue],
        reason: Option<&Error>,
        is_interrupted: bool,
    ) -> ExitStatus {
        // What a kernel cancels is an error like any other; the caller may set a deadline.
        let stopped = is_interrupted
            || reason.is_some_and(|reason| reason.code() == ErrorCode::DeadlineExceeded);
        let is_limit = |error: &Error| error.code() == ErrorCode::ResourceExhausted;
        let failed = || results.iter().filter_map(AnyAsyncValue::error);
        // What no result tells counts where the call was stopped: a limit may be why it took so long. It counts, too,
        // where there is no result to tell it and whoever runs the function has set limits; without them, it is
        // an error of the function as any other, as it is to the original.
        let is_limited = *self.host.limits() != Limits::default();
        let is_heard = (stopped || (results.is_empty() && is_limited)) && self.errors.any(is_limit);
        if reason.is_some_and(is_limit) || failed().any(is_limit) || is_heard {
            return ExitStatus::LimitExceeded;
        }
        if stopped {
            return ExitStatus::Cancelled;
        }
        // A function without results has no other way to return what its kernels report.
        if failed().next().is_some() || (results.is_empty() && self.errors.any(|_| true)) {
            return ExitStatus::FunctionFailed;
        }
        ExitStatus::Fine
    }
}
