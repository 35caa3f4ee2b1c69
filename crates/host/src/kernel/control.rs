//! Control flow as kernels: the two resumable results.
//!
//! A kernel never runs a function on its own stack. It answers [`Call`] (run this function; its
//! results are mine), or [`Step`] (do this for me, then ask me again), and the executor keeps the
//! frames. So calls nest as deep as memory goes, whatever the thread's stack, and a user's own
//! control flow is built from the same two as `tfrt.if` and `tfrt.while`.
//!
//! A loop whose turns are calls, one after the other, answers [`Loop`]: the executor keeps its state
//! in one place and its values in one list, and a turn allocates nothing.
//!
//! # Examples
//!
//! A kernel that applies a function `n` times:
//!
//! ```
//! use tfrt_host::AnyAsyncValue;
//! use tfrt_host::kernel::{Callee, Loop, Rest, Turn, Turns};
//!
//! struct Repeat {
//!     n_left: u32,
//!     body: Callee,
//! }
//!
//! impl Turns for Repeat {
//!     fn next(&mut self, _: &mut Vec<AnyAsyncValue>) -> Turn {
//!         if self.n_left == 0 {
//!             return Turn::Done;
//!         }
//!         self.n_left -= 1;
//!         Turn::Call(self.body)
//!     }
//! }
//!
//! fn repeat(n: u32, values: Rest, body: Callee) -> Loop<Repeat> {
//!     Loop::new(Repeat { n_left: n, body }, values.0)
//! }
//! ```

use std::fmt;
use std::num::NonZeroU32;

use tfrt_async::{AnyAsyncValue, Error};

use super::param::Arguments;
use crate::executor::plan::function::FunctionPlan;
use crate::function::Function;
use crate::program::{LoadedProgram, ProgramRef};

/// A function of a kernel's own program, for the executor to call.
///
/// It is a number: it keeps nothing alive. A kernel gets it as a parameter; answering with one that
/// a kernel of another program got is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    program: NonZeroU32,
    index: u32,
    n_arguments: u32,
    n_results: u32,
}

impl Callee {
    pub(crate) fn new(program: NonZeroU32, index: u32, topology: &FunctionPlan) -> Callee {
        Callee {
            program,
            index,
            n_arguments: topology.n_arguments() as u32,
            n_results: topology.n_results() as u32,
        }
    }

    /// Its number in `program`, if it is one of that.
    #[inline]
    pub(crate) fn own_index(self, program: &LoadedProgram) -> Option<u32> {
        (self.program == program.id()).then_some(self.index)
    }

    /// The number of arguments.
    pub fn n_arguments(self) -> usize {
        self.n_arguments as usize
    }

    /// The number of results.
    pub fn n_results(self) -> usize {
        self.n_results as usize
    }
}

/// The function that is called.
#[derive(Debug)]
pub enum Target {
    /// A function of the program of the kernel that calls.
    Own(Callee),
    /// Any function.
    Held(Function),
}

impl From<Callee> for Target {
    #[inline]
    fn from(callee: Callee) -> Target {
        Target::Own(callee)
    }
}

impl From<Function> for Target {
    fn from(function: Function) -> Target {
        Target::Held(function)
    }
}

impl Target {
    /// Its number in `program`.
    #[inline]
    pub(crate) fn index_in(&self, program: &ProgramRef) -> Result<u32, Error> {
        let index = match self {
            Target::Own(callee) => callee.own_index(program),
            Target::Held(function) => function.index_in(program),
        };
        index.ok_or_else(|| {
            Error::internal("the kernel calls a function that it was given by another program")
        })
    }

    /// The function.
    pub(crate) fn function(self, program: &ProgramRef) -> Result<Function, Error> {
        match self {
            Target::Own(_) => Ok(Function::new(program.clone(), self.index_in(program)?)),
            Target::Held(function) => Ok(function),
        }
    }
}

/// A function to run with these arguments; its results become the kernel's.
#[derive(Debug)]
pub struct Call {
    pub(crate) target: Target,
    pub(crate) arguments: Vec<AnyAsyncValue>,
}

/// A function to run with the operands that a kernel has left as [`Arguments`]; its results become the
/// kernel's.
#[derive(Debug)]
pub struct Forward(pub(super) Callee);

impl Call {
    /// Asks for `callee` to be run with the operands that were left: nothing is copied into a list.
    #[inline]
    pub fn forward(callee: Callee, arguments: Arguments) -> Forward {
        let _ = arguments;
        Forward(callee)
    }

    /// Asks for a [`Callee`] or a [`Function`] to be run with `arguments`.
    ///
    /// As a kernel's own answer, a function of its operation, with arguments that are there: the call
    /// may run where nobody waits. In a [`Step`], any function, and values to come.
    ///
    /// The results are errors if the numbers or types do not fit.
    #[inline]
    pub fn new(target: impl Into<Target>, arguments: Vec<AnyAsyncValue>) -> Self {
        Call {
            target: target.into(),
            arguments,
        }
    }
}

/// The turns of a loop.
pub trait Turns: Send + 'static {
    /// Says what comes next. `values` are those that the loop began with, and after a call its
    /// results; they become the arguments of the next call, or the results of the kernel.
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn;
}

/// The next step of a loop.
#[derive(Debug)]
pub enum Turn {
    /// Nothing: the values are the results.
    Done,
    /// Nothing: all results are this error, which the kernel reports.
    Fail(Error),
    /// A call with the values as arguments, on this thread as far as it goes.
    Call(Callee),
    /// Runs a function as a task of its own, where functions may run elsewhere: the next turn gets pending
    /// results.
    Spawn(Callee),
    /// Suspends the loop until the value of this number is settled, then asks [`Turns::next`] again, as a task.
    Wait(usize),
    /// Suspends the loop as [`Wait`](Self::Wait) does, and asks again on the thread that settles the value.
    WaitInline(usize),
}

/// A loop that the executor is to run for a kernel.
#[derive(Debug)]
pub struct Loop<L> {
    pub(super) turns: L,
    pub(super) values: Vec<AnyAsyncValue>,
}

impl<L: Turns> Loop<L> {
    /// Begins with these values.
    pub fn new(turns: L, values: Vec<AnyAsyncValue>) -> Self {
        Loop { turns, values }
    }
}

/// Takes the turns of a loop one step at a time, where they may have to wait.
pub(crate) fn looping(mut turns: Box<dyn Turns>, mut values: Vec<AnyAsyncValue>) -> Step {
    match turns.next(&mut values) {
        Turn::Done => Step::done(values),
        Turn::Fail(error) => Step::fail(error),
        Turn::Call(body) => Step::call(Call::new(body, values), move |values| {
            looping(turns, values)
        }),
        Turn::Spawn(body) => Step::spawn(Call::new(body, values), move |values| {
            looping(turns, values)
        }),
        Turn::Wait(index) => {
            let awaited = values.get(index).cloned().into_iter().collect();
            Step::wait_for(awaited, move |_| looping(turns, values))
        }
        Turn::WaitInline(index) => {
            let awaited = values.get(index).cloned().into_iter().collect();
            Step::when_settled(awaited, move |_| looping(turns, values))
        }
    }
}

/// The continuation of a control kernel after its call, given the results of that call.
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

/// The work that the executor does for a kernel's results after the kernel has returned.
pub(crate) enum Flow {
    /// Run a function.
    Call(Call),
    /// Run the turns of a loop.
    Loop(Box<dyn Turns>, Vec<AnyAsyncValue>),
    /// Go through the steps of a control kernel.
    Step(Step),
}
