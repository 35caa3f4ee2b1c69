//! Control flow as kernels: the two resumable results.
//!
//! A kernel never runs a function on its own stack. It answers [`Call`] (run this function; its
//! results are mine), or [`Step`] (do this for me, then ask me again), and the executor keeps the
//! frames. So calls nest as deep as memory goes, whatever the thread's stack, and a user's own
//! control flow is built from the same two as `tfrt.if` and `tfrt.while`.
//!
//! # Examples
//!
//! A kernel that applies a function `n` times:
//!
//! ```
//! use tfrt_host::kernel::{Call, Function, Rest, Step};
//!
//! fn repeat(n: i32, values: Rest, body: Function) -> Step {
//!     if n <= 0 {
//!         return Step::done(values.0);
//!     }
//!     Step::call(Call::new(body.clone(), values.0), move |results| {
//!         repeat(n - 1, Rest(results), body)
//!     })
//! }
//! ```

use std::fmt;

use tfrt_async::{AnyAsyncValue, Error};

use crate::function::Function;

/// A function to run with these arguments; its results become the kernel's.
#[derive(Debug)]
pub struct Call {
    pub(crate) function: Function,
    pub(crate) arguments: Vec<AnyAsyncValue>,
}

impl Call {
    /// Asks for `function` to be run with `arguments`.
    ///
    /// The results are errors if the numbers or types do not fit.
    pub fn new(function: Function, arguments: Vec<AnyAsyncValue>) -> Self {
        Call {
            function,
            arguments,
        }
    }
}

/// What a control kernel does after its call, given the results of that call.
pub(crate) type Resume = Box<dyn FnOnce(Vec<AnyAsyncValue>) -> Step + Send>;

/// The first thing that a forked step does.
pub(crate) type Begin = Box<dyn FnOnce() -> Step + Send>;

/// How a control kernel goes on after it had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// As a task of the work queue.
    Task,
    /// On the thread that settles the last value, unless its stack is deep already.
    Inline,
}

/// The next thing that a control kernel asks for.
pub struct Step(pub(crate) StepKind);

pub(crate) enum StepKind {
    /// These are the results.
    Done(Vec<AnyAsyncValue>),
    /// All results are this error, which the kernel reports.
    Fail(Error),
    /// Run this function, then resume with its results, there or to come.
    Call(Call, Resume),
    /// Start this function as a task of its own, and resume at once with its results to come.
    Spawn(Call, Resume),
    /// Start these steps as a task of their own, and resume at once with so many results to come.
    Fork(Begin, usize, Resume),
    /// Resume once all of these are settled, with these.
    Await(Vec<AnyAsyncValue>, Wake, Resume),
}

impl Step {
    /// Ends with `results`, which may be there or to come.
    pub fn done(results: Vec<AnyAsyncValue>) -> Self {
        Step(StepKind::Done(results))
    }

    /// Ends with `error` on every result. The error is reported as the kernel's own.
    pub fn fail(error: Error) -> Self {
        Step(StepKind::Fail(error))
    }

    /// Runs a function on this thread as far as it goes, then resumes with its results, of which
    /// some may still be to come.
    pub fn call(
        call: Call,
        then: impl FnOnce(Vec<AnyAsyncValue>) -> Step + Send + 'static,
    ) -> Self {
        Step(StepKind::Call(call, Box::new(then)))
    }

    /// Hands a function to the work queue and resumes at once with its results to come.
    pub fn spawn(
        call: Call,
        then: impl FnOnce(Vec<AnyAsyncValue>) -> Step + Send + 'static,
    ) -> Self {
        Step(StepKind::Spawn(call, Box::new(then)))
    }

    /// Hands steps of their own to the work queue and resumes at once with their `n_results`
    /// results to come.
    ///
    /// So a loop can be halved again and again, each half a task that forks its own upper half.
    pub fn fork(
        n_results: usize,
        begin: impl FnOnce() -> Step + Send + 'static,
        then: impl FnOnce(Vec<AnyAsyncValue>) -> Step + Send + 'static,
    ) -> Self {
        Step(StepKind::Fork(Box::new(begin), n_results, Box::new(then)))
    }

    /// Resumes when every value is settled; errors count as settled.
    ///
    /// If they are settled already, the kernel goes on at once on this thread; otherwise as a task
    /// of the work queue.
    pub fn wait_for(
        values: Vec<AnyAsyncValue>,
        then: impl FnOnce(Vec<AnyAsyncValue>) -> Step + Send + 'static,
    ) -> Self {
        Step(StepKind::Await(values, Wake::Task, Box::new(then)))
    }

    /// Resumes when every value is settled, as [`Step::wait_for`] does, but on the thread that
    /// settles the last of them.
    pub fn when_settled(
        values: Vec<AnyAsyncValue>,
        then: impl FnOnce(Vec<AnyAsyncValue>) -> Step + Send + 'static,
    ) -> Self {
        Step(StepKind::Await(values, Wake::Inline, Box::new(then)))
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            StepKind::Done(_) => "Step::done(..)",
            StepKind::Fail(_) => "Step::fail(..)",
            StepKind::Call(..) => "Step::call(..)",
            StepKind::Spawn(..) => "Step::spawn(..)",
            StepKind::Fork(..) => "Step::fork(..)",
            StepKind::Await(_, Wake::Task, _) => "Step::wait_for(..)",
            StepKind::Await(_, Wake::Inline, _) => "Step::when_settled(..)",
        })
    }
}

/// What the executor does after a kernel has returned.
#[derive(Debug)]
pub enum Flow {
    /// The results are in the frame.
    Done,
    /// Run a function for them.
    Call(Call),
    /// Go through the steps of a control kernel for them.
    Step(Step),
}
