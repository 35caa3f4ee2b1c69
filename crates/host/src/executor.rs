//! The dataflow executor: runs a kernel as soon as its operands are there.
//!
//! There is no program counter. A call is a [`Frame`]: one slot per register and one wait count
//! per kernel. Whoever fills a register counts down the kernels that use it; whoever takes a count
//! to zero owns that kernel and runs it. Nothing here blocks, and nothing here takes a lock while
//! kernels run.
//!
//! # The story of a call
//!
//! 1. [`Executor::enter`] readies the kernels without operands and fills the arguments.
//! 2. [`Executor::drive`] runs ready kernels of the current stream, the last to become ready first,
//!    and hands those of other streams to the work queue ([`ready`]).
//! 3. [`run_kernel`] skips a kernel with an error among its strict operands, or of a cancelled
//!    request: its results are that error. Otherwise it calls the kernel.
//! 4. [`publish`] fills a result's register and counts down its users. A result that is still to
//!    come is published by a continuation on its value ([`resume`]).
//! 5. A kernel that asks for a call suspends: the callee's frame goes on a stack of ours, runs as
//!    far as it can, and the kernel goes on with its results. The thread's stack does not grow.
//!
//! # Order
//!
//! Kernels without a path of operands between them may run in any order, on any thread. Effects
//! that must keep an order carry a chain.
//!
//! # Invariants
//!
//! * A register is filled before any of its users is counted down.
//! * A wait count reaches zero once, so a kernel runs once.
//! * Every register gets a value, be it an error, so every result is settled.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tfrt_async::queue::Task;
use tfrt_async::{AnyAsyncValue, AnyPromise, Error, run_when_settled};

use crate::kernel::control::{Begin, Resume, StepKind, Wake};
use crate::kernel::{Call, Flow, KernelFrame, Step};
use crate::request::RequestContext;
use crate::trace::{Level, Scope};

pub(crate) mod frame;
pub(crate) mod live;
mod ready;
pub(crate) mod registers;
pub(crate) mod shape;
pub(crate) mod topology;

use frame::{Claim, Frame, Running, SharedFrame, Suspended};
use ready::{Group, ReadyQueue};
use registers::{Fill, Ready};

/// Continuations nest on the thread's stack to this depth; deeper ones become tasks.
const MAX_CONTINUATION_DEPTH: u32 = 100;

/// Runs a new frame on this thread as far as it goes. Its results may then be taken.
pub(crate) fn execute(frame: &Arc<Frame>, arguments: Vec<AnyAsyncValue>) {
    let mut executor = Executor::default();
    executor.enter(frame.clone(), arguments, Returns::Nowhere);
    executor.drive();
}

/// Hands a new frame to the work queue. Its results may be taken at once.
pub(crate) fn spawn(frame: &Arc<Frame>, arguments: Vec<AnyAsyncValue>) {
    let shared = frame.share();
    let queue = frame.request().queue().clone();
    queue.add_task(Task::new(move || {
        let held = arguments.clone();
        execute(&shared.into_local(), arguments);
        drop(held);
    }));
}

/// Goes on with a call whose awaited `register` got its value, unless somebody else did.
pub(crate) fn resume(frame: SharedFrame, register: u32, value: AnyAsyncValue) {
    let frame = frame.into_local();
    let Some(claim) = frame.claim(register) else {
        // Its producer comes too late, and has nobody left to fail.
        return;
    };
    let topology = frame.topology();
    let value = value.settled();
    let (stream, value) = match frame.shape().producer(register) {
        Some(kernel) => (topology.stream(kernel), located(&frame, kernel, value)),
        None => (topology.root_stream(), value),
    };
    match claim {
        Claim::Fill(fill) => {
            let mut queue = ReadyQueue::new(stream);
            publish_settled(&frame, &mut queue, fill, value);
            Executor::with(frame, queue).drive();
        }
        Claim::Promise(promise) => promise.forward(value),
    }
}

/// Names the kernel that a register awaits, with its place, unless it waits for calls of its own.
pub(crate) fn describe(frame: &Arc<Frame>, register: u32) -> Option<String> {
    let kernel = frame.shape().producer(register)?;
    let context = frame.context_of(kernel);
    let name = frame.topology().kernel(kernel).name();
    Some(match context.location() {
        Some(location) => format!("kernel '{name}' at {location}"),
        None => format!("kernel '{name}'"),
    })
}

/// Where the results of a frame go when all that could run of it has run.
enum Returns {
    /// To whoever holds the frame, or nowhere.
    Nowhere,
    /// They are the results of a kernel of the activation below, or its control step goes on with
    /// them. The operands of that kernel are held until then.
    Kernel {
        kernel: Suspended,
        held: Vec<AnyAsyncValue>,
        then: Option<Resume>,
    },
    /// A control step whose kernel has returned goes on with them.
    Detached {
        step: Detached,
        held: Vec<AnyAsyncValue>,
        then: Resume,
    },
}

/// A control kernel that has returned before its results were there.
struct Detached {
    frame: SharedFrame,
    kernel: u32,
    results: Vec<AnyPromise>,
}

/// A call in progress on this thread.
struct Activation {
    frame: Arc<Frame>,
    queue: ReadyQueue,
    returns: Returns,
}

/// One thread's stack of calls.
#[derive(Default)]
struct Executor {
    stack: Vec<Activation>,
    /// The results of the kernel that is running.
    results: Vec<AnyAsyncValue>,
    n_steps: u64,
    /// How many tasks were handed over since this thread last let the queue come to them.
    n_handed: u64,
}

/// Loops let the queue come to the tasks that they left, after this many.
const TASKS_PER_TURN: u64 = 1 << 16;

/// Counts a thread as busy while it is inside the executor.
struct Busy(Arc<RequestContext>);

impl Busy {
    fn new(request: Arc<RequestContext>) -> Self {
        request.host().live_frames().enter();
        Busy(request)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.host().live_frames().leave();
    }
}

impl Executor {
    /// A stack with one call in progress that returns to nobody.
    fn with(frame: Arc<Frame>, queue: ReadyQueue) -> Self {
        let stack = vec![Activation {
            frame,
            queue,
            returns: Returns::Nowhere,
        }];
        Executor {
            stack,
            ..Executor::default()
        }
    }

    /// Puts a new call on the stack, its arguments filled.
    fn enter(&mut self, frame: Arc<Frame>, arguments: Vec<AnyAsyncValue>, returns: Returns) {
        self.n_steps += 1;
        let mut queue = ReadyQueue::new(frame.topology().root_stream());
        let (entry, fills) = frame.begin();
        for ready in entry {
            queue.push(&frame, ready);
        }
        for (fill, value) in fills.into_iter().zip(arguments) {
            publish(&frame, &mut queue, None, fill, value);
        }
        self.stack.push(Activation {
            frame,
            queue,
            returns,
        });
    }

    /// Runs what is ready, until nothing is left on the stack.
    fn drive(mut self) {
        let Some(bottom) = self.stack.first() else {
            return;
        };
        let busy = Busy::new(bottom.frame.request().clone());
        let steps_per_count = busy.0.steps_per_count();
        while let Some(top) = self.stack.last_mut() {
            count(&top.frame, &mut self.n_steps, steps_per_count);
            for group in top.queue.turn() {
                self.n_handed += 1;
                hand_over(&top.frame, group);
            }
            match top.queue.pop() {
                Some(ready) => {
                    self.n_steps += 1;
                    count(&top.frame, &mut self.n_steps, steps_per_count);
                    let flow = run_kernel(&top.frame, &mut top.queue, ready, &mut self.results);
                    if let Some((kernel, flow)) = flow {
                        self.follow(kernel, flow);
                    }
                }
                None => {
                    let ended = self.stack.pop().expect("there is a top");
                    self.end(ended);
                }
            }
        }
        busy.0.count_steps(self.n_steps);
    }

    /// A call has run as far as it could.
    fn end(&mut self, ended: Activation) {
        match ended.returns {
            Returns::Nowhere => {}
            Returns::Kernel { kernel, held, then } => {
                let results = ended.frame.take_results();
                drop(ended.frame);
                self.returned(kernel, held, then, results);
            }
            Returns::Detached { step, held, then } => {
                let results = ended.frame.take_results();
                drop(held);
                match guarded(|| then(results)) {
                    Ok(next) => self.detached(step, next),
                    Err(error) => step.fail(error),
                }
            }
        }
    }

    /// A kernel's call has returned: publishes its results, or goes on with its next step.
    fn returned(
        &mut self,
        kernel: Suspended,
        held: Vec<AnyAsyncValue>,
        then: Option<Resume>,
        results: Vec<AnyAsyncValue>,
    ) {
        drop(held);
        match then {
            Some(then) => match guarded(|| then(results)) {
                Ok(step) => self.follow(kernel, Flow::Step(step)),
                Err(error) => self.complete(kernel, Vec::new(), Some(error)),
            },
            None => self.complete(kernel, results, None),
        }
    }

    /// Does what a kernel of the activation on top asks for.
    fn follow(&mut self, kernel: Suspended, flow: Flow) {
        let mut step = match flow {
            Flow::Done => return self.complete(kernel, Vec::new(), None),
            Flow::Call(call) => return self.call(kernel, call),
            Flow::Step(step) => step,
        };
        loop {
            let (results, then) = match step.0 {
                StepKind::Done(results) => return self.complete(kernel, results, None),
                StepKind::Fail(error) => return self.complete(kernel, Vec::new(), Some(error)),
                StepKind::Call(call, then) if self.n_handed >= TASKS_PER_TURN => {
                    let again = Box::new(move |_| Step(StepKind::Call(call, then)));
                    return self.detach(kernel, Vec::new(), Wake::Task, again);
                }
                StepKind::Call(call, then) => {
                    // The body of a loop may hold no kernel that would see the cancellation.
                    let begun = match cancelled(kernel.frame()) {
                        Some(error) => Err(error),
                        None => begin_call(kernel.frame(), call),
                    };
                    match begun {
                        Ok(Begun::Frame(frame, arguments)) => {
                            let (held, then) = (arguments.clone(), Some(then));
                            let returns = Returns::Kernel { kernel, held, then };
                            return self.enter(frame, arguments, returns);
                        }
                        Ok(Begun::Ended(results)) => (results, then),
                        Err(error) => return self.complete(kernel, Vec::new(), Some(error)),
                    }
                }
                StepKind::Spawn(call, then) => match cancelled(kernel.frame()) {
                    Some(error) => return self.complete(kernel, Vec::new(), Some(error)),
                    None => (spawn_call(kernel.frame(), call), then),
                },
                StepKind::Fork(begin, n_results, then) => {
                    let (step, results) = Detached::new(&kernel, n_results);
                    step.begin(begin);
                    (results, then)
                }
                StepKind::Await(values, wake, then) => {
                    if !values.iter().all(AnyAsyncValue::is_settled) {
                        return self.detach(kernel, values, wake, then);
                    }
                    (values, then)
                }
            };
            step = match guarded(|| then(results)) {
                Ok(step) => step,
                Err(error) => return self.complete(kernel, Vec::new(), Some(error)),
            };
        }
    }

    /// Runs a function for a kernel of the activation on top, whose results it gives.
    fn call(&mut self, kernel: Suspended, call: Call) {
        match begin_call(kernel.frame(), call) {
            Ok(Begun::Frame(frame, arguments)) => {
                let (held, then) = (arguments.clone(), None);
                self.enter(frame, arguments, Returns::Kernel { kernel, held, then });
            }
            Ok(Begun::Ended(results)) => self.complete(kernel, results, None),
            Err(error) => self.complete(kernel, Vec::new(), Some(error)),
        }
    }

    /// Publishes the results of a suspended kernel of the activation on top.
    fn complete(
        &mut self,
        mut kernel: Suspended,
        results: Vec<AnyAsyncValue>,
        failure: Option<Error>,
    ) {
        let top = self
            .stack
            .last_mut()
            .expect("a kernel's activation is below its calls");
        assert!(
            Arc::ptr_eq(kernel.frame(), &top.frame),
            "the kernel belongs to the top"
        );
        self.results.clear();
        self.results.extend(results);
        finish(kernel.resume(), &mut top.queue, &mut self.results, failure);
    }

    /// Lets a control kernel return before its results are there; its steps go on as tasks.
    fn detach(&mut self, kernel: Suspended, values: Vec<AnyAsyncValue>, wake: Wake, then: Resume) {
        let n_results = kernel.frame().shape().n_results_of(kernel.kernel());
        let (step, handles) = Detached::new(&kernel, n_results);
        step.wait(values, wake, then);
        self.complete(kernel, handles, None);
    }

    /// Goes on with a detached control step.
    fn detached(&mut self, detached: Detached, mut step: Step) {
        loop {
            let (results, then) = match step.0 {
                StepKind::Done(results) => return detached.finish(results),
                StepKind::Fail(error) => return detached.fail(error),
                StepKind::Call(call, then) if self.n_handed >= TASKS_PER_TURN => {
                    let again = Box::new(move |_| Step(StepKind::Call(call, then)));
                    return detached.wait(Vec::new(), Wake::Task, again);
                }
                StepKind::Call(call, then) => {
                    let caller = detached.frame.local();
                    let begun = match cancelled(caller) {
                        Some(error) => Err(error),
                        None => begin_call(caller, call),
                    };
                    match begun {
                        Ok(Begun::Frame(frame, arguments)) => {
                            let held = arguments.clone();
                            let returns = Returns::Detached {
                                step: detached,
                                held,
                                then,
                            };
                            return self.enter(frame, arguments, returns);
                        }
                        Ok(Begun::Ended(results)) => (results, then),
                        Err(error) => return detached.fail(error),
                    }
                }
                StepKind::Spawn(call, then) => match cancelled(detached.frame.local()) {
                    Some(error) => return detached.fail(error),
                    None => (spawn_call(detached.frame.local(), call), then),
                },
                StepKind::Fork(begin, n_results, then) => {
                    let (step, results) = detached.sibling(n_results);
                    step.begin(begin);
                    (results, then)
                }
                StepKind::Await(values, wake, then) => {
                    if !values.iter().all(AnyAsyncValue::is_settled) {
                        return detached.wait(values, wake, then);
                    }
                    (values, then)
                }
            };
            step = match guarded(|| then(results)) {
                Ok(step) => step,
                Err(error) => return detached.fail(error),
            };
        }
    }
}

impl Detached {
    /// Makes steps with so many results to come.
    fn new(kernel: &Suspended, n_results: usize) -> (Self, Vec<AnyAsyncValue>) {
        Self::of(kernel.frame().share(), kernel.kernel(), n_results)
    }

    /// Makes further steps of the same kernel.
    fn sibling(&self, n_results: usize) -> (Self, Vec<AnyAsyncValue>) {
        Self::of(self.frame.clone(), self.kernel, n_results)
    }

    fn of(frame: SharedFrame, kernel: u32, n_results: usize) -> (Self, Vec<AnyAsyncValue>) {
        let (results, handles) = (0..n_results).map(|_| AnyAsyncValue::pending()).unzip();
        let step = Detached {
            frame,
            kernel,
            results,
        };
        (step, handles)
    }

    /// Starts as a task.
    fn begin(self, begin: Begin) {
        let queue = self.frame.local().request().queue().clone();
        queue.add_task(Task::new(move || self.go_on(begin)));
    }

    /// Goes on when all values are settled.
    fn wait(self, values: Vec<AnyAsyncValue>, wake: Wake, then: Resume) {
        let queue = self.frame.local().request().queue().clone();
        let awaited = values.clone();
        run_when_settled(&awaited, move || match wake {
            Wake::Task => queue.add_task(Task::new(move || self.go_on(|| then(values)))),
            Wake::Inline => continue_with(self.frame.clone(), move |_| self.go_on(|| then(values))),
        });
    }

    /// Takes the next step, and those after it as far as they go on this thread.
    fn go_on(self, next: impl FnOnce() -> Step) {
        let mut executor = Executor::default();
        match guarded(next) {
            Ok(step) => executor.detached(self, step),
            Err(error) => self.fail(error),
        }
        executor.drive();
    }

    fn finish(self, results: Vec<AnyAsyncValue>) {
        if results.len() != self.results.len() {
            let error = wrong_result_count(results.len(), self.results.len());
            return self.fail(error);
        }
        for (promise, value) in self.results.into_iter().zip(results) {
            promise.forward(value);
        }
    }

    fn fail(self, error: Error) {
        let error = report(self.frame.local(), self.kernel, error);
        for promise in self.results {
            promise.fail(error.clone());
        }
    }
}

/// Why no function of a frame's request may start, if it was cancelled.
fn cancelled(frame: &Frame) -> Option<Error> {
    frame.request().cancellation().cloned()
}

/// A call that has begun.
enum Begun {
    /// It is to be run, with these arguments.
    Frame(Arc<Frame>, Vec<AnyAsyncValue>),
    /// A synchronous function has no activation: it ran to its end at once.
    Ended(Vec<AnyAsyncValue>),
}

/// Begins a call from inside of `caller`.
fn begin_call(caller: &Arc<Frame>, call: Call) -> Result<Begun, Error> {
    let Call {
        function,
        arguments,
    } = call;
    Ok(match function.frame_for_call(caller, &arguments)? {
        Some(frame) => Begun::Frame(frame, arguments),
        None => Begun::Ended(function.run_in_order(caller, &arguments)),
    })
}

/// Starts a function as a task; what can't be started has errors for results.
fn spawn_call(caller: &Arc<Frame>, call: Call) -> Vec<AnyAsyncValue> {
    let Call {
        function,
        arguments,
    } = call;
    match function.frame_for_call(caller, &arguments) {
        Ok(Some(frame)) => {
            spawn(&frame, arguments);
            frame.take_results()
        }
        Ok(None) => function.run_in_order(caller, &arguments),
        Err(error) => {
            let n_results = function.n_results();
            (0..n_results)
                .map(|_| AnyAsyncValue::from_error(error.clone()))
                .collect()
        }
    }
}

/// Tells the request of the steps that were made, if they are many enough.
#[inline]
fn count(frame: &Frame, n_steps: &mut u64, steps_per_count: u64) {
    if *n_steps >= steps_per_count {
        frame.request().count_steps(std::mem::take(n_steps));
    }
}

/// Gives a group of ready kernels to the work queue.
fn hand_over(frame: &Arc<Frame>, group: Group) {
    let shared = frame.share();
    frame.request().queue().add_task(Task::new(move || {
        Executor::with(shared.into_local(), ReadyQueue::of_group(group)).drive();
    }));
}

/// Runs one kernel and publishes its results, or gives back what it asks for.
fn run_kernel(
    frame: &Arc<Frame>,
    queue: &mut ReadyQueue,
    ready: Ready,
    results: &mut Vec<AnyAsyncValue>,
) -> Option<(Suspended, Flow)> {
    results.clear();
    let running = frame.start(ready);
    if let Some(error) = reason_to_skip(&running) {
        finish_skipped(running, queue, &error);
        return None;
    }
    let node = running.node();
    let _scope = frame
        .request()
        .host()
        .trace()
        .map(|sink| Scope::new(sink, Level::Debug, || node.name().to_string()));
    let mut call = KernelFrame::new(running, results);
    let flow = guarded(|| node.kernel().call(&mut call));
    let (mut running, mut failure) = call.end();
    let flow = flow.unwrap_or_else(|error| {
        failure = Some(error);
        Flow::Done
    });
    running.release_operands();
    match flow {
        Flow::Done => {
            finish(running, queue, results, failure);
            None
        }
        flow => Some((running.suspend(), flow)),
    }
}

/// Calls into a kernel; a panic becomes an error.
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Result<R, Error> {
    let inside = IN_KERNEL.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IN_KERNEL.set(inside);
    result.map_err(|payload| {
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        let error = Error::internal(format!("the kernel panicked: {message}"));
        // A payload may panic when it is dropped; that is no reason to take the worker down.
        if catch_unwind(AssertUnwindSafe(|| drop(payload))).is_err() {
            return error.with_note("and its panic payload panicked when it was dropped");
        }
        error
    })
}

thread_local! {
    static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    static CONTINUATION_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Tells whether this thread is inside a kernel, whose panics become errors: for panic hooks.
pub fn is_in_kernel() -> bool {
    IN_KERNEL.get()
}

/// The error that becomes the results of a kernel instead of running it: that of the failed strict
/// operand with the highest number, else the request's cancellation.
#[inline]
fn reason_to_skip(running: &Running<'_>) -> Option<Error> {
    let node = running.node();
    if !running.all_plain() && !node.is_marked {
        let signature = node.signature();
        let mut failed = None;
        running.any_operand(|index, operand| {
            if signature.is_strict(index) {
                failed = operand.error().cloned().or(failed.take());
            }
            false
        });
        if failed.is_some() {
            return failed;
        }
    }
    running.frame().request().cancellation().cloned()
}

/// Publishes an error as every result of a kernel that does not run.
fn finish_skipped(mut running: Running<'_>, queue: &mut ReadyQueue, error: &Error) {
    running.release_operands();
    let frame = running.frame();
    while let Some(fill) = running.next_result() {
        publish_settled(frame, queue, fill, AnyAsyncValue::from_error(error.clone()));
    }
    running.finish();
}

/// Publishes the results of a kernel that has run.
fn finish(
    mut running: Running<'_>,
    queue: &mut ReadyQueue,
    results: &mut Vec<AnyAsyncValue>,
    failure: Option<Error>,
) {
    let frame = running.frame();
    let kernel = running.kernel();
    let n_results = running.n_results();
    let failure = match failure {
        // Nobody can tell which result is which.
        None if results.len() != n_results => {
            let n_given = results.drain(..).len();
            Some(wrong_result_count(n_given, n_results))
        }
        failure => failure,
    };
    if let Some(failure) = failure {
        let error = report(frame, kernel, failure);
        results.truncate(n_results);
        results.resize_with(n_results, || AnyAsyncValue::from_error(error.clone()));
    }
    for value in results.drain(..) {
        let fill = running.next_result().expect("the numbers were compared");
        publish(frame, queue, Some(kernel), fill, value);
    }
    running.finish();
}

fn wrong_result_count(found: usize, expected: usize) -> Error {
    Error::internal(format!(
        "the kernel gave {found} results where {expected} are expected"
    ))
}

/// Fills a register and counts its users down, now or when the value is there.
fn publish(
    frame: &Arc<Frame>,
    queue: &mut ReadyQueue,
    kernel: Option<u32>,
    fill: Fill,
    value: AnyAsyncValue,
) {
    if value.is_plain() {
        return publish_settled(frame, queue, fill, value);
    }
    let value = value.settled();
    if !value.is_settled() {
        return publish_pending(frame, queue, kernel, fill, value);
    }
    // Only now is it certain whether the value is an error: it may have settled just before.
    let value = match kernel {
        Some(kernel) => located(frame, kernel, value),
        None => value,
    };
    publish_settled(frame, queue, fill, value);
}

#[inline]
fn publish_settled(frame: &Arc<Frame>, queue: &mut ReadyQueue, fill: Fill, value: AnyAsyncValue) {
    let filled = frame.fill(fill, value);
    frame.count_all(filled, |ready| queue.push(frame, ready));
}

/// Publishes a value that is still to come: leaves the register to the continuation, or to whoever
/// fails it from outside.
///
/// Users that can do with a handle start now, with one of ours, so that it can be failed too.
fn publish_pending(
    frame: &Arc<Frame>,
    queue: &mut ReadyQueue,
    kernel: Option<u32>,
    fill: Fill,
    value: AnyAsyncValue,
) {
    let topology = frame.topology();
    if let Some(origin) = kernel.and_then(|kernel| topology.kernel(kernel).origin.as_ref()) {
        value.set_origin(origin);
    }
    let shared = frame.share();
    let register = frame.register_of(&fill);
    if !frame.shape().has_early_users(register) {
        frame.leave(fill);
    } else {
        let (promise, handle) = AnyAsyncValue::pending();
        let mut filled = frame.fill(fill, handle.clone());
        frame.leave_promise(register, promise);
        frame.count_early(&mut filled, |ready| queue.push(frame, ready));
        let (shared, stream) = (shared.clone(), queue.stream());
        handle.when_settled(move |_| {
            continue_with(shared, move |frame| {
                let frame = frame.into_local();
                let mut queue = ReadyQueue::new(stream);
                frame.count_all(filled, |ready| queue.push(&frame, ready));
                Executor::with(frame, queue).drive();
            });
        });
    }
    let late = shared.clone();
    value.when_settled(move |value| {
        continue_with(shared, move |frame| resume(frame, register, value));
    });
    // Whoever gave the request up may have looked before the register was left.
    if let Some(reason) = late.local().request().abandoned() {
        let error = AnyAsyncValue::from_error(reason.clone());
        resume(late, register, error);
    }
}

/// Runs a continuation on this thread, or as a task if it nests too deep.
fn continue_with(frame: SharedFrame, f: impl FnOnce(SharedFrame) + Send + 'static) {
    let depth = CONTINUATION_DEPTH.get();
    if depth >= MAX_CONTINUATION_DEPTH {
        let queue = frame.local().request().queue().clone();
        queue.add_task(Task::new(move || f(frame)));
        return;
    }
    /// Puts the depth back, even if the continuation panics.
    struct Depth(u32);
    impl Drop for Depth {
        fn drop(&mut self) {
            CONTINUATION_DEPTH.set(self.0);
        }
    }
    CONTINUATION_DEPTH.set(depth + 1);
    let _depth = Depth(depth);
    f(frame);
}

/// Gives an error its place, and reports it, if it is the kernel's own.
#[inline]
pub(crate) fn located(frame: &Arc<Frame>, kernel: u32, value: AnyAsyncValue) -> AnyAsyncValue {
    if value.is_plain() {
        return value;
    }
    match value.error() {
        // An error that has a kernel's name was reported when it got it.
        Some(error) if error.kernel().is_none() => {
            let error = error.clone();
            // A promise may be dropped before its value is known to be this kernel's.
            let error = match &frame.topology().kernel(kernel).origin {
                Some(origin) => origin.name(error),
                None => error,
            };
            AnyAsyncValue::from_error(report(frame, kernel, error))
        }
        _ => value,
    }
}

/// Gives an error its place and its kernel, and tells the diagnostic handler, once.
pub(crate) fn report(frame: &Arc<Frame>, kernel: u32, error: Error) -> Error {
    if error.kernel().is_some() {
        error
    } else {
        frame.context_of(kernel).report(error)
    }
}
