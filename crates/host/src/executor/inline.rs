//! Runs calls whose kernels end when they return, in an order that was found at load.
//!
//! No kernel waits for another, so nothing is counted, nothing is queued and nothing is shared: a
//! call is an [`InlineFrame`](stack) of a stack, its kernels run from front to back, and a kernel that
//! asks for a call gets the next level. Loops keep their level's memory from turn to turn. The
//! results, values or errors, are there when the outermost call ends.
//!
//! A function whose kernels return, but may return results that are still to come, is [tried](attempt)
//! the same way: mostly they are there. Where one is not, what is [left](RemainingCall) of the call is counted.
//!
//! Functions marked synchronous run the same way, in the order in which they are written; the
//! first error ends them.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use tfrt_async::{AnyAsyncValue, Error};
use tfrt_bef::FunctionKind;

use super::frame::next_call_number;
use super::plan::function::FunctionPlan;
use super::{guarded, route};
use crate::kernel::{
    Call, Flow, KernelEnv, Scratch, Status, Target, Turn, Turns, wrong_result_count,
};
use crate::program::ProgramRef;
use crate::request::RequestContext;
use stack::{LocalSlots, Pause, RemainingCall, Retained, Stack};

/// Kernels may run functions on the thread's stack, by asking for it, to this depth.
const MAX_NESTING: u32 = 200;

pub(crate) mod stack;

thread_local! {
    static NESTING: Cell<u32> = const { Cell::new(0) };
}

/// Runs a function to its end. Its arguments are settled, and as many as it takes; its
/// [manner](super::plan::function::Manner) is not `Counted`. `depth` is the number of calls around it.
///
/// The values are the arguments, and then the results.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory, or the depth is beyond the limit; of a function
/// marked synchronous the first error.
#[cfg_attr(not(tfrt_for_size), inline(always))]
pub(crate) fn run(
    program: &ProgramRef,
    function: u32,
    request: &Arc<RequestContext>,
    depth: u32,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<(), Error> {
    let end = run_to(End::OfKernels, program, function, request, depth, values)?;
    debug_assert!(end.is_none(), "it runs to the end of its kernels");
    Ok(())
}

/// Whether one more function may run on the thread's stack.
#[inline]
pub(crate) fn may_run() -> bool {
    Nesting::may_enter()
}

/// As [`run`], for a function whose topology [tries that](FunctionPlan::is_tried), as long as the results of
/// kernels are there: else gives what is left of the call, which is to be counted.
///
/// # Errors
///
/// As for [`run`].
#[inline]
pub(crate) fn attempt(
    program: &ProgramRef,
    function: u32,
    request: &Arc<RequestContext>,
    depth: u32,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<Option<Box<RemainingCall>>, Error> {
    run_to(End::OfValues, program, function, request, depth, values)
}

/// How far a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Through all kernels, which give values.
    OfKernels,
    /// Up to the first kernel one of whose results is to come.
    OfValues,
}

fn run_to(
    end: End,
    program: &ProgramRef,
    function: u32,
    request: &Arc<RequestContext>,
    depth: u32,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<Option<Box<RemainingCall>>, Error> {
    let mut scratch = Scratch::default();
    let left = run_with(&mut scratch, end, program, function, request, depth, values)?;
    scratch.end();
    Ok(left)
}

#[inline(always)]
fn run_with(
    scratch: &mut Scratch,
    end: End,
    program: &ProgramRef,
    function: u32,
    request: &Arc<RequestContext>,
    depth: u32,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<Option<Box<RemainingCall>>, Error> {
    let _nesting = Nesting::enter()?;
    let topology = program.topology(function);
    let max_levels = begin_call(topology, request, depth as usize, values)?;
    let mut local = LocalSlots::new();
    let allocator = request.host().allocator();
    let mut stack = Stack::new(allocator, max_levels, &mut local, topology);
    if !stack.begin(values) {
        return Err(program.no_memory(function, Stack::size_bytes(topology)));
    }
    let mut around = KernelEnv {
        program,
        request,
        topology,
        frame: None,
        kernel: 0,
        is_marked: false,
        scratch,
    };
    let is_watched = request.is_watched();
    let is_timed = end == End::OfKernels && route::is_timed(topology, request);
    let started = is_timed.then(Instant::now);
    // Most calls need nothing but their kernels.
    let first = match is_watched || cfg!(tfrt_for_size) {
        true => None,
        false => Some(guarded(|| stack.run_level::<false>(&mut around))),
    };
    match first {
        Some(Ok(Pause::End)) => {
            if stack.end(values) {
                std::mem::forget(stack);
            }
        }
        first => {
            if end == End::OfValues && is_watched {
                stack.number(next_call_number());
            }
            let call = InlineCall {
                stack: &mut stack,
                suspended: Vec::new(),
                around: &mut around,
                depth,
                first_error: None,
                end,
                is_watched,
                has_paused: false,
            };
            // Where size matters most, no call is tried.
            if call.drive(first)? && !cfg!(tfrt_for_size) {
                return Ok(Some(stack.leave()));
            }
            stack.take_results(values);
        }
    }
    if let Some(started) = started {
        topology.cost.learn(started.elapsed());
    }
    Ok(None)
}

/// Counts a call that so many are around, and says whether it may begin: how many may be in progress at
/// the same time from it on.
fn begin_call(
    topology: &FunctionPlan,
    request: &RequestContext,
    depth: usize,
    arguments: &[AnyAsyncValue],
) -> Result<usize, Error> {
    request.check_depth(depth)?;
    request.count_steps(1);
    if topology.kind() == FunctionKind::Sync {
        // The first error ends it, and arguments come first.
        let failed = arguments.iter().rev().find_map(AnyAsyncValue::error);
        if let Some(error) = failed {
            return Err(error.clone());
        }
    }
    Ok(request.host().limits().max_depth as usize - depth)
}

/// A function that runs on the thread's stack; it counts as long as this lives, even if something of
/// ours panics.
struct Nesting(u32);

impl Nesting {
    /// Whether there is room for one more.
    #[inline]
    fn may_enter() -> bool {
        NESTING.get() < MAX_NESTING
    }

    #[inline]
    fn enter() -> Result<Self, Error> {
        let nesting = NESTING.get();
        if nesting >= MAX_NESTING {
            return Err(Error::resource_exhausted(format!(
                "synchronous functions are nested deeper than {MAX_NESTING}"
            )));
        }
        NESTING.set(nesting + 1);
        Ok(Nesting(nesting))
    }
}

impl Drop for Nesting {
    #[inline]
    fn drop(&mut self) {
        NESTING.set(self.0);
    }
}

/// A kernel that is suspended until the call that it has made returns.
struct SuspendedKernel {
    /// Its operands, if they are counted: they are released when it has returned.
    held: Vec<AnyAsyncValue>,
    /// The loop whose turn the call is.
    turns: Option<Box<dyn Turns>>,
    /// The list in which that loop gets the results of a turn.
    values: Vec<AnyAsyncValue>,
}

/// Why [`advance`] has returned.
enum Advance {
    Paused(Pause),
    /// A turn of the loop that is kept has ended, and this comes next.
    Turned(Turn),
}

/// Runs kernels, and turns of loops, until something else is to be done.
///
/// # Panics
///
/// If a kernel does, or a loop between two turns: the results of the last turn were taken then.
#[inline(never)]
fn advance<'f, const WATCHED: bool>(
    stack: &mut Stack<'f>,
    suspended: &mut [SuspendedKernel],
    around: &mut KernelEnv<'f>,
) -> Advance {
    loop {
        match stack.run::<WATCHED>(around) {
            Pause::End if stack.kept() == Retained::Loop => {
                let kernel = suspended.last_mut().expect("the loop is kept");
                if let Some(turn) = next_turn(stack, kernel, around) {
                    return Advance::Turned(turn);
                }
            }
            pause => return Advance::Paused(pause),
        }
    }
}

/// A turn of a loop has ended: begins the next in its place, if that is a call of the same function
/// with values in place, or says what comes next.
#[inline]
fn next_turn(
    stack: &mut Stack<'_>,
    kernel: &mut SuspendedKernel,
    around: &KernelEnv<'_>,
) -> Option<Turn> {
    let turns = kernel.turns.as_mut().expect("the loop is kept");
    stack.take_results(&mut kernel.values);
    let turn = turns.next(&mut kernel.values);
    if let Turn::Call(body) | Turn::Spawn(body) = &turn {
        let callee = stack.topology();
        let is_usual = body.own_index(around.program) == Some(callee.number)
            && callee.kind() != FunctionKind::Sync
            && kernel.held.is_empty()
            && !around.request.is_cancelled();
        if is_usual && stack.restart(&mut kernel.values) {
            around.request.count_steps(1);
            return None;
        }
    }
    Some(turn)
}

/// Calls in progress on this thread, one of which needs more than to run its kernels.
struct InlineCall<'s, 'f> {
    stack: &'s mut Stack<'f>,
    /// Of the calls for which something is kept, the innermost last.
    suspended: Vec<SuspendedKernel>,
    around: &'s mut KernelEnv<'f>,
    /// How many calls are around the outermost.
    depth: u32,
    /// Of the last kernel, if its function is marked synchronous.
    first_error: Option<Error>,
    end: End,
    is_watched: bool,
    /// A result of the last kernel is to come, and this is to end there.
    has_paused: bool,
}

impl InlineCall<'_, '_> {
    /// Goes on after the kernels of the outermost call have paused.
    #[inline(never)]
    fn resolve(&mut self, paused: Result<Pause, Error>) -> Result<Advance, Error> {
        match self.stack.resolve::<false>(paused?, self.around) {
            Some(pause) => Ok(Advance::Paused(pause)),
            None => self.advance(),
        }
    }

    /// Runs until the kernels of the outermost call have ended, or the end that was asked for: then gives `true`. `first`
    /// is how the kernels of that call have paused, if they have run.
    #[cfg_attr(not(tfrt_for_size), inline(never))]
    fn drive(mut self, mut first: Option<Result<Pause, Error>>) -> Result<bool, Error> {
        loop {
            let next = match first.take() {
                Some(paused) if !cfg!(tfrt_for_size) => self.resolve(paused),
                _ => self.advance(),
            };
            match next {
                Ok(Advance::Paused(Pause::End)) => match self.stack.n_results_of_caller() {
                    None => return Ok(false),
                    Some(n_results) => self.return_to_caller(n_results),
                },
                Ok(Advance::Paused(Pause::Unsettled(status))) => self.attend(status),
                Ok(Advance::Paused(Pause::Cancelled(reason))) => self.fail_with(reason),
                Ok(Advance::Turned(turn)) => self.end_turn(Ok(turn)),
                Err(panic) if self.stack.is_over() => self.end_turn(Err(panic)),
                Err(panic) => self.fail(panic),
            }
            if self.has_paused {
                return Ok(true);
            }
            if let Some(error) = self.first_error.take() {
                self.end_with(error)?;
            }
        }
    }

    /// Goes on; a panic becomes an error.
    #[inline]
    fn advance(&mut self) -> Result<Advance, Error> {
        let (stack, suspended) = (&mut *self.stack, &mut *self.suspended);
        guarded(|| match self.is_watched {
            true => advance::<true>(stack, suspended, self.around),
            false => advance::<false>(stack, suspended, self.around),
        })
    }

    /// Does what the last kernel has left to do.
    fn attend(&mut self, status: Status) {
        if status.is_call() {
            self.forward();
        } else if status.is_failed() {
            let failure = self.around.scratch.failure.take();
            self.fail(failure.unwrap_or_else(|| Error::internal("the kernel has failed")));
        } else if status.is_skipped() {
            let failure = self.around.scratch.failure.take();
            self.fail_with(failure.unwrap_or_else(|| Error::internal("an operand has failed")));
        } else if status.is_flow() {
            match self.around.scratch.flow.take() {
                Some(Flow::Call(call)) => self.follow(call),
                Some(Flow::Loop(turns, values)) => self.turn(turns, values),
                Some(Flow::Step(_)) | None => {
                    self.fail(Error::internal("the kernel goes on after it has returned"));
                }
            }
        } else {
            self.settle();
        }
    }

    /// Gives the results of the last kernel, which are put, to their readers.
    fn settle(&mut self) {
        let may_pause = !cfg!(tfrt_for_size) && self.end == End::OfValues;
        if may_pause && !self.stack.is_put_settled() {
            self.has_paused = true;
            return;
        }
        let is_sync = self.stack.topology().kind() == FunctionKind::Sync;
        let (around, first_error) = (&*self.around, &mut self.first_error);
        self.stack.settle(|value| {
            if value.is_plain() {
                return value;
            }
            let mut value = value.settled();
            if !value.is_settled() {
                value = Error::internal("a result is to come where none can be waited for").into();
            }
            let value = around.located(value);
            if is_sync && first_error.is_none() {
                *first_error = value.error().cloned();
            }
            value
        });
    }

    /// The last kernel has failed: reports it.
    #[cold]
    fn fail(&mut self, error: Error) {
        let error = self.around.report(error);
        self.fail_with(error);
    }

    /// Sets the results that the last kernel did not put to an error.
    #[cold]
    fn fail_with(&mut self, error: Error) {
        self.around.scratch.failure = None;
        if self.stack.topology().kind() == FunctionKind::Sync {
            self.first_error.get_or_insert_with(|| error.clone());
        }
        self.stack
            .put_rest(|| AnyAsyncValue::from_error(error.clone()));
        self.settle();
    }

    /// Begins the call that the last kernel asks for, with the operands that it has left.
    fn forward(&mut self) {
        let mut arguments = self.around.scratch.list();
        self.stack.take_left(&mut arguments);
        let callee = self.around.scratch.callee.take();
        let callee = callee.expect("the status says that there is one");
        self.follow(Call::new(callee, arguments));
    }

    /// Begins the call that the last kernel asks for.
    fn follow(&mut self, call: Call) {
        let Call { target, arguments } = call;
        let begun = target
            .index_in(self.around.program)
            .and_then(|function| self.begin(function, arguments, None));
        if let Err(error) = begun {
            self.fail(error);
        }
    }

    /// Begins a call for the last kernel.
    fn begin(
        &mut self,
        function: u32,
        mut arguments: Vec<AnyAsyncValue>,
        turns: Option<Box<dyn Turns>>,
    ) -> Result<(), Error> {
        let (program, request) = (self.around.program, self.around.request);
        if let Some(reason) = request.cancellation() {
            return Err(reason.clone());
        }
        let topology = program.topology(function);
        if !route::follows_in_order(topology) {
            return Err(Error::internal(
                "the kernel calls a function that it was not given",
            ));
        }
        if topology.n_arguments() != arguments.len() {
            return Err(program.wrong_argument_count(function, arguments.len()));
        }
        let held = held(&mut arguments)?;
        let depth = self.depth as usize + self.stack.depth();
        begin_call(topology, request, depth, &arguments)?;
        let kept = match &turns {
            Some(_) => Retained::Loop,
            None if held.is_empty() => Retained::Nothing,
            None => Retained::Operands,
        };
        if !self.stack.push(topology, &mut arguments, kept) {
            return Err(program.no_memory(function, Stack::size_bytes(topology)));
        }
        if kept == Retained::Nothing {
            self.around.scratch.keep(arguments);
        } else {
            self.suspended.push(SuspendedKernel {
                held,
                turns,
                values: arguments,
            });
        }
        Ok(())
    }

    /// The topmost call, which is no turn of a loop, has ended: gives its results to the kernel that
    /// made it, which has so many.
    fn return_to_caller(&mut self, n_expected: usize) {
        let n_results = self.n_results_of_call();
        let kept = self.take_kept();
        if n_results == n_expected {
            self.stack.pop_to_caller();
        } else {
            let mut values = Vec::new();
            self.stack.take_results(&mut values);
            self.stack.pop();
        }
        self.go_back();
        drop(kept);
        if n_results == n_expected {
            self.settle();
        } else {
            self.fail(wrong_result_count(n_results, n_expected));
        }
    }

    fn n_results_of_call(&self) -> usize {
        self.stack.topology().n_results()
    }

    /// Takes the suspended caller of the topmost call, which ends.
    fn take_kept(&mut self) -> Option<SuspendedKernel> {
        match self.stack.kept() {
            Retained::Nothing => None,
            Retained::Operands | Retained::Loop => self.suspended.pop(),
        }
    }

    /// The last kernel is that which has made the call that was the topmost.
    fn go_back(&mut self) {
        self.around.topology = self.stack.topology();
        self.around.kernel = self.stack.kernel();
    }

    /// A turn of a loop has ended: goes back to the loop's kernel, and does what comes next.
    fn end_turn(&mut self, next: Result<Turn, Error>) {
        let SuspendedKernel {
            held,
            turns,
            values,
        } = self.suspended.pop().expect("the loop is kept");
        self.stack.pop();
        self.go_back();
        drop(held);
        let turns = turns.expect("the loop is kept");
        self.go_on(turns, next, values);
    }

    /// Takes the next turn of a loop, or ends it.
    fn turn(&mut self, mut turns: Box<dyn Turns>, mut values: Vec<AnyAsyncValue>) {
        let next = guarded(|| turns.next(&mut values));
        self.go_on(turns, next, values);
    }

    /// Does what comes next in a loop.
    fn go_on(
        &mut self,
        turns: Box<dyn Turns>,
        next: Result<Turn, Error>,
        mut values: Vec<AnyAsyncValue>,
    ) {
        match next {
            Ok(Turn::Call(body) | Turn::Spawn(body)) => {
                let begun = Target::from(body)
                    .index_in(self.around.program)
                    .and_then(|function| self.begin(function, values, Some(turns)));
                if let Err(error) = begun {
                    self.fail(error);
                }
            }
            Ok(Turn::Done) => {
                let n_expected = self.stack.n_results();
                if values.len() != n_expected {
                    return self.fail(wrong_result_count(values.len(), n_expected));
                }
                let mut results = values.drain(..);
                self.stack
                    .put_rest(|| results.next().expect("the numbers are equal"));
                drop(results);
                self.around.scratch.keep(values);
                self.settle();
            }
            Ok(Turn::Fail(error)) | Err(error) => self.fail(error),
            // All values are settled here.
            Ok(Turn::Wait(_) | Turn::WaitInline(_)) => {
                self.fail(Error::internal("the loop waits for a value that is there"));
            }
        }
    }

    /// Ends the topmost call, of a function marked synchronous, with the error of its last kernel.
    fn end_with(&mut self, error: Error) -> Result<(), Error> {
        let kept = self.take_kept();
        if !self.stack.abandon() {
            return Err(error);
        }
        self.go_back();
        drop(kept);
        self.fail_with(error);
        Ok(())
    }
}

/// Copies of these arguments, if any is counted. All are settled then.
fn held(arguments: &mut [AnyAsyncValue]) -> Result<Vec<AnyAsyncValue>, Error> {
    if !arguments.iter().any(AnyAsyncValue::is_counted) {
        return Ok(Vec::new());
    }
    for argument in arguments.iter_mut() {
        let value = std::mem::replace(argument, AnyAsyncValue::empty());
        *argument = value.settled();
    }
    if !arguments.iter().all(AnyAsyncValue::is_settled) {
        return Err(Error::internal(
            "the kernel passes a value to come on to its call; a kernel that does so answers a `Step`",
        ));
    }
    Ok(arguments.to_vec())
}
