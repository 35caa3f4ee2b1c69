//! Runs calls whose kernels end when they return, in an order that was found at load.
//!
//! No kernel waits for another, so nothing is counted, nothing is queued and nothing is shared: a
//! call is a [`Level`](super::stack) of a stack, its kernels run from front to back, and a kernel that
//! asks for a call gets the next level. Loops keep their level's memory from turn to turn. The
//! results, values or errors, are there when the outermost call ends.
//!
//! Functions marked synchronous run the same way, in the order in which they are written; the
//! first error ends them.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use tfrt_async::{AnyAsyncValue, Error};
use tfrt_bef::FunctionKind;

use super::guarded;
use super::stack::{Kept, LocalSlots, Pause, Stack};
use super::topology::Manner;
use crate::kernel::{
    Call, Flow, Scratch, Status, Surroundings, Target, Turn, Turns, wrong_result_count,
};
use crate::program::ProgramRef;
use crate::request::RequestContext;

/// Kernels may run functions on the thread's stack, by asking for it, to this depth.
const MAX_NESTING: u32 = 200;

thread_local! {
    static NESTING: Cell<u32> = const { Cell::new(0) };
}

/// Runs a function to its end. Its arguments are settled, and as many as it takes; its
/// [`Manner`] is not [`Manner::Counted`]. `depth` is the number of calls around it.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory, or the depth is beyond the limit; of a function
/// marked synchronous the first error.
pub(crate) fn run(
    program: &ProgramRef,
    function: u32,
    request: &Arc<RequestContext>,
    depth: u32,
    arguments: &mut Vec<AnyAsyncValue>,
) -> Result<Vec<AnyAsyncValue>, Error> {
    let nesting = NESTING.get();
    if nesting >= MAX_NESTING {
        return Err(Error::resource_exhausted(format!(
            "synchronous functions are nested deeper than {MAX_NESTING}"
        )));
    }
    let topology = program.topology(function);
    request.check_depth(depth as usize)?;
    let max_levels = (request.host().limits().max_depth - depth) as usize;
    let mut scratch = Scratch::default();
    let mut local = LocalSlots::new();
    let mut straight = Straight {
        stack: Stack::new(request.host().allocator(), max_levels, &mut local),
        around: Surroundings {
            program,
            request,
            topology,
            kernel: 0,
            is_marked: false,
            scratch: &mut scratch,
        },
        depth,
        first_error: None,
    };
    straight.call(function, arguments, Caller::default())?;
    let is_timed = topology.manner < Manner::Ordered && request.queue().parallelism() > 1;
    let started = is_timed.then(Instant::now);
    /// Puts the depth back, even if something of ours panics.
    struct Nesting(u32);
    impl Drop for Nesting {
        fn drop(&mut self) {
            NESTING.set(self.0);
        }
    }
    NESTING.set(nesting + 1);
    let _nesting = Nesting(nesting);
    let results = if request.is_watched() {
        straight.drive::<true>()
    } else {
        straight.drive::<false>()
    };
    if let Some(started) = started {
        topology.cost.learn(started.elapsed());
    }
    results
}

/// What is kept for the kernel that has made a call.
#[derive(Default)]
struct Caller {
    /// Its operands, if they are counted: they are released when it has returned.
    held: Vec<AnyAsyncValue>,
    /// The loop whose turn the call is.
    turns: Option<Box<dyn Turns>>,
}

impl Kept for Caller {
    #[inline]
    fn is_nothing(&self) -> bool {
        self.turns.is_none() && self.held.is_empty()
    }
}

/// Calls in progress on this thread.
struct Straight<'f> {
    stack: Stack<'f, Caller>,
    around: Surroundings<'f>,
    /// How many calls are around the outermost.
    depth: u32,
    /// Of the last kernel, if its function is marked synchronous.
    first_error: Option<Error>,
}

impl<'f> Straight<'f> {
    /// Runs until the outermost call has ended.
    fn drive<const WATCHED: bool>(&mut self) -> Result<Vec<AnyAsyncValue>, Error> {
        loop {
            let (stack, around) = (&mut self.stack, &mut self.around);
            match guarded(|| stack.run::<WATCHED>(around)) {
                Ok(Pause::End) => {
                    if self.stack.depth() == 1 {
                        let mut results = Vec::with_capacity(self.n_results());
                        self.stack.pop_into(&mut results);
                        return Ok(results);
                    }
                    self.return_to_caller();
                }
                Ok(Pause::Unsettled(status)) => self.attend(status),
                Ok(Pause::Cancelled(reason)) => self.fail_with(reason),
                Err(panic) => self.fail(panic),
            }
            if let Some(error) = self.first_error.take() {
                self.end_with(error)?;
            }
        }
    }

    fn n_results(&self) -> usize {
        self.stack.topology().shape().result_registers().len()
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
        let is_sync = self.stack.topology().kind() == FunctionKind::Sync;
        let (around, first_error) = (&self.around, &mut self.first_error);
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

    /// What the last kernel did not put becomes this error.
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
        let Call {
            target,
            mut arguments,
        } = call;
        let begun = target
            .index_in(self.around.program)
            .and_then(|function| self.begin(function, &mut arguments, None));
        self.around.scratch.keep(arguments);
        if let Err(error) = begun {
            self.fail(error);
        }
    }

    /// Begins a call for the last kernel.
    fn begin(
        &mut self,
        function: u32,
        arguments: &mut Vec<AnyAsyncValue>,
        turns: Option<Box<dyn Turns>>,
    ) -> Result<(), Error> {
        if let Some(reason) = self.around.request.cancellation() {
            return Err(reason.clone());
        }
        let topology = self.around.program.topology(function);
        if topology.manner < Manner::OneThread {
            return Err(Error::internal(
                "the kernel calls a function that it was not given",
            ));
        }
        if topology.shape().n_arguments() != arguments.len() {
            return Err(self
                .around
                .program
                .wrong_argument_count(function, arguments.len()));
        }
        let mut held = Vec::new();
        if arguments.iter().any(AnyAsyncValue::is_counted) {
            for argument in arguments.iter_mut() {
                let value = std::mem::replace(argument, AnyAsyncValue::empty());
                *argument = value.settled();
            }
            if !arguments.iter().all(AnyAsyncValue::is_settled) {
                return Err(Error::internal(
                    "the kernel passes a value to come on to its call; a kernel that does so answers a `Step`",
                ));
            }
            held.clone_from(arguments);
        }
        self.call(function, arguments, Caller { held, turns })
    }

    /// Begins a call, which fits.
    fn call(
        &mut self,
        function: u32,
        arguments: &mut Vec<AnyAsyncValue>,
        caller: Caller,
    ) -> Result<(), Error> {
        let (program, request) = (self.around.program, self.around.request);
        request.count_steps(1);
        let topology = program.topology(function);
        if topology.kind() == FunctionKind::Sync {
            // The first error ends it, and arguments come first.
            let failed = arguments.iter().rev().find_map(AnyAsyncValue::error);
            if let Some(error) = failed {
                return Err(error.clone());
            }
        }
        let depth = self.depth as usize + self.stack.depth();
        request.check_depth(depth)?;
        if self.stack.push(topology, arguments, caller) {
            Ok(())
        } else {
            Err(program.no_memory(function, Stack::<Caller>::size_bytes(topology)))
        }
    }

    /// The topmost call has ended: gives its results to the kernel that made it, or to its loop.
    fn return_to_caller(&mut self) {
        let callee = self.stack.topology();
        let n_results = callee.shape().result_registers().len();
        if self.stack.kept().turns.is_some() {
            return self.end_turn();
        }
        let n_expected = self.stack.n_results_of_caller();
        if n_results != n_expected {
            let mut values = Vec::new();
            self.stack.pop_into(&mut values);
            drop(values);
            self.around.topology = self.stack.topology();
            self.around.kernel = self.stack.kernel();
            return self.fail(wrong_result_count(n_results, n_expected));
        }
        let caller = self.stack.pop_to_caller();
        self.around.topology = self.stack.topology();
        self.around.kernel = self.stack.kernel();
        drop(caller.held);
        self.settle();
    }

    /// A turn of a loop has ended: begins the next in its place, if that is a call of the same function.
    fn end_turn(&mut self) {
        let mut values = self.around.scratch.list();
        self.stack.take_results(&mut values);
        let callee = self.stack.topology();
        let caller = self.stack.kept();
        let next = caller
            .turns
            .as_mut()
            .map(|turns| guarded(|| turns.next(&mut values)));
        if let Some(Ok(Turn::Call(body) | Turn::Spawn(body))) = &next {
            let program = self.around.program;
            let is_same = body
                .own_index(program)
                .is_some_and(|index| std::ptr::eq(program.topology(index), callee));
            let is_usual = is_same
                && values.len() == body.n_arguments()
                && callee.kind() != FunctionKind::Sync
                && self.stack.kept().held.is_empty()
                && !values.iter().any(AnyAsyncValue::is_counted)
                && !self.around.request.is_cancelled();
            if is_usual {
                self.around.request.count_steps(1);
                self.stack.restart(&mut values);
                return self.around.scratch.keep(values);
            }
        }
        let caller = self.stack.pop();
        self.around.topology = self.stack.topology();
        self.around.kernel = self.stack.kernel();
        drop(caller.held);
        if let (Some(turns), Some(next)) = (caller.turns, next) {
            self.go_on(turns, next, values);
        }
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
                    .and_then(|function| self.begin(function, &mut values, Some(turns)));
                self.around.scratch.keep(values);
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
        let caller = self.stack.abandon();
        if self.stack.depth() == 0 {
            return Err(error);
        }
        self.around.topology = self.stack.topology();
        self.around.kernel = self.stack.kernel();
        drop(caller);
        self.fail_with(error);
        Ok(())
    }
}
