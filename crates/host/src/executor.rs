//! The dataflow executor: runs a kernel as soon as its operands are there.
//!
//! There is no program counter. A call is a [`Frame`]: one slot per register and one wait count
//! per kernel. Whoever fills a register counts down the kernels that use it; whoever takes a count
//! to zero owns that kernel and runs it. Nothing here blocks, and nothing here takes a lock while
//! kernels run.
//!
//! Where no kernel of a function, and of those that it calls, can end after it has returned, all of
//! this is known before: such calls run in an order found at load, without counts ([`inline`]).
//!
//! # The story of a call
//!
//! 1. [`call`] asks [`route`] for the way. A call in order runs in [`inline`]; one that tries to goes on
//!    from where that ends, should a result still be to come ([`go_on_counting`]). For all others
//!    [`Executor::enter`] lists the kernels without operands and fills the arguments.
//! 2. [`ReadyList::run`] runs ready kernels of the current stream, the last to become ready first. As
//!    long as they return values, it fills registers and counts their users down by itself.
//! 3. [`Executor::drive`] attends to the rest: hands kernels of other streams to the work queue
//!    ([`ready`]); gives the results of a kernel the error of an operand, of the kernel, or of the
//!    request.
//! 4. [`publish`] fills a register and counts down its users. A result that is still to come is
//!    published by a continuation on its value ([`resume`]).
//! 5. A kernel that asks for a call suspends: the callee's frame goes on a stack of ours, runs as
//!    far as it can, and the kernel goes on with its results. The thread's stack does not grow.
//!    Steps that wait return first and go on later ([`detached`]).
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

use smallvec::SmallVec;
use tfrt_async::queue::Task;
use tfrt_async::{AnyAsyncValue, Error};

use crate::function::Function;
use crate::kernel::control::{Resume, StepKind, Wake};
use crate::kernel::{Call, Flow, KernelEnv, Scratch, Status, Step, looping, wrong_result_count};
use crate::request::{ExecutionContext, RequestContext};

pub(crate) mod cost;
mod detached;
pub(crate) mod frame;
pub(crate) mod inline;
pub(crate) mod later;
pub(crate) mod plan;
mod ready;
pub(crate) mod registers;
pub(crate) mod route;
pub(crate) mod slots;
pub(crate) mod watch;

use detached::Detached;
use frame::{Claim, Frame, Pause, ReadyGroup, ReadyList, Right, Running, SharedFrame, Suspended};
use inline::stack::RemainingCall;
use plan::function::FunctionPlan;
use route::Route;
use slots::{Activation, BorrowedOperands, Cursor, Outcome};
use watch::Busier;

/// Continuations nest on the thread's stack to this depth; deeper ones become tasks.
const MAX_CONTINUATION_DEPTH: u32 = 100;

/// Runs a new frame on this thread as far as it goes. Its results may then be taken.
pub(crate) fn execute(frame: &Arc<Frame>, arguments: Vec<AnyAsyncValue>) {
    let mut executor = Executor::default();
    executor.enter(frame.clone(), arguments, Returns::Nowhere);
    executor.drive();
}

/// Goes on with a call of which some kernels have run in order, in a new frame of it, as far as it goes. Its
/// results may then be taken.
#[cold]
fn go_on_counting(frame: &Arc<Frame>, left: RemainingCall) {
    let mut list = ReadyList::new(frame.clone(), frame.shape().root_stream());
    let begun = list.begin_given(left.arguments);
    assert!(begun.is_ok(), "one stream, and no marked kernels");
    let mut results = left.results.into_iter();
    for kernel in 0..left.n_kernels {
        let running = list.skip(kernel);
        let n_results = frame.shape().record(kernel).n_results() as usize;
        let given = results.by_ref().take(n_results).collect();
        // What came before the last kernel is settled, and has its place.
        finish(&mut list, running, given, None);
    }
    Executor::with(list).drive();
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
    settle(frame, claim, register, value);
}

/// Goes on with a call whose awaited `register` got its value.
fn settle(frame: Arc<Frame>, claim: Claim, register: u32, value: AnyAsyncValue) {
    let mut value = value.settled();
    let shape = frame.shape();
    let mut stream = shape.root_stream();
    // Most values need neither a place nor a stream.
    let is_looked_up = !value.is_plain() || !shape.has_one_stream();
    if let Some(kernel) = is_looked_up.then(|| shape.producer(register)).flatten() {
        stream = shape.stream(kernel);
        value = located(&frame, kernel, value);
    }
    match claim {
        Claim::Fill(right) => {
            let mut list = ReadyList::new(frame, stream);
            publish_settled(&mut list, right, value);
            Executor::with(list).drive();
        }
        Claim::Promise(promise) => promise.forward(value),
    }
}

/// Goes on with a call in which `kernel` was put off, and has given its only result now.
fn bring(mut list: ReadyList, right: Right, kernel: u32, value: AnyAsyncValue) {
    if value.is_plain() && !value.is_counted() {
        list.fill_in_place(right, kernel, value);
    } else {
        publish(&mut list, Some(kernel), right, value);
    }
    Executor::run(list);
}

/// Names the kernel that a register awaits, with its place, unless it waits for calls of its own.
pub(crate) fn describe(frame: &Arc<Frame>, register: u32) -> Option<String> {
    let kernel = frame.shape().producer(register)?;
    let context = frame.context_of(kernel);
    let name = &frame.topology().entry(kernel).name;
    Some(match context.location() {
        Some(location) => format!("kernel '{name}' at {location}"),
        None => format!("kernel '{name}'"),
    })
}

/// Where the results of a frame go when all that could run of it has run.
enum Returns {
    /// To whoever holds the frame, or nowhere.
    Nowhere,
    /// They are the results of a kernel of the call below, or its control step goes on with them. The
    /// operands of that kernel are held until then.
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

/// A call in progress on this thread.
struct InProgress {
    list: ReadyList,
    returns: Returns,
}

/// One thread's stack of calls.
#[derive(Default)]
struct Executor {
    stack: SmallVec<[InProgress; 1]>,
    /// By the host of the call at the bottom.
    busy: Busy,
    scratch: Scratch,
    /// How many tasks were handed over since this thread last let the queue come to them.
    n_handed: u64,
}

/// How the watch for stuck requests sees that a thread is inside of the executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Busy {
    /// It is not, or does not know yet.
    #[default]
    No,
    /// By the task that it is running, which is in flight.
    InTask,
    /// It has entered, and is to leave.
    Entered,
}

/// Loops let the queue come to the tasks that they left, after this many.
const TASKS_PER_TURN: u64 = 1 << 16;

impl Executor {
    /// A stack with one call in progress that returns to nobody.
    fn with(list: ReadyList) -> Self {
        let mut executor = Executor::default();
        let returns = Returns::Nowhere;
        executor.stack.push(InProgress { list, returns });
        executor
    }

    /// Puts a new call on the stack, its arguments filled.
    fn enter(&mut self, frame: Arc<Frame>, arguments: Vec<AnyAsyncValue>, returns: Returns) {
        frame.request().count_steps(1);
        let stream = frame.shape().root_stream();
        let list = ReadyList::new(frame, stream);
        self.stack.push(InProgress { list, returns });
        let list = self.top();
        let arguments = match arguments.iter().all(AnyAsyncValue::is_settled) {
            true => list.begin_given(arguments.into_iter().map(AnyAsyncValue::settled).collect()),
            false => Err(arguments),
        };
        let Err(arguments) = arguments else { return };
        let mut rights = list.begin();
        for value in arguments {
            if let Some(right) = list.next_argument(&mut rights) {
                publish(list, None, right, value);
            }
        }
    }

    /// Runs what is ready in a list, and what comes of it, in a task of its request's queue.
    fn run(mut list: ReadyList) {
        let request = list.frame().request();
        let is_watched = request.is_watched();
        if is_watched || !request.is_on_queue_of_host() {
            return Executor::with(list).drive();
        }
        let mut executor = Executor::default();
        executor.busy = Busy::InTask;
        let pause = run_guarded(&mut list, &mut executor.scratch, is_watched);
        if let Ok(Pause::Empty) = pause {
            return;
        }
        let returns = Returns::Nowhere;
        executor.stack.push(InProgress { list, returns });
        executor.go_on(pause);
        executor.drive();
    }

    /// Runs what is ready, until nothing is left on the stack.
    fn drive(&mut self) {
        let Some(bottom) = self.stack.first() else {
            return;
        };
        let request = bottom.list.frame().request();
        let is_watched = request.is_watched();
        while self.is_in_progress() {
            let top = self.stack.last_mut().expect("a call is in progress");
            let pause = run_guarded(&mut top.list, &mut self.scratch, is_watched);
            self.go_on(pause);
        }
    }

    /// Does what is to be done when the list on top has paused.
    fn go_on(&mut self, pause: Result<Pause, Error>) {
        let top = self.stack.last_mut().expect("a call is in progress");
        let list = &mut top.list;
        match pause {
            Ok(Pause::Unsettled(running, status)) => self.attend(running, status),
            Ok(Pause::Empty) => {
                if self.stack.len() == 1 {
                    self.leave();
                }
                let ended = self.stack.pop().expect("there is a top");
                self.end(ended);
            }
            Ok(Pause::Elsewhere) => {
                let queue = list.frame().request().queue().clone();
                let mut groups = list.turn();
                self.n_handed += groups.len() as u64;
                queue.add_tasks(&mut groups.by_ref().map(ReadyGroup::into_task));
            }
            Ok(Pause::Cancelled(running, reason)) => {
                finish(list, running, Vec::new(), Some(reason));
            }
            Ok(Pause::Marked(running)) => self.run_marked(running),
            Ok(Pause::Shared) => {}
            Err(panic) => {
                let running = list.panicked().expect("nothing but kernels panics");
                let error = report(list.frame(), running.kernel(), panic);
                finish(list, running, Vec::new(), Some(error));
            }
        }
    }

    /// Whether there is anything on the stack; if so, the thread counts as busy.
    fn is_in_progress(&mut self) -> bool {
        let Some(bottom) = self.stack.first() else {
            return false;
        };
        if self.busy == Busy::No {
            let host = bottom.list.frame().request().host();
            self.busy = match host.queue().is_worker_thread() {
                true => Busy::InTask,
                false => {
                    host.live_frames().enter();
                    Busy::Entered
                }
            };
        }
        true
    }

    /// The call at the bottom is going to end; what goes on after it is busy by itself.
    fn leave(&mut self) {
        let busy = std::mem::take(&mut self.busy);
        if let (Busy::Entered, Some(bottom)) = (busy, self.stack.first()) {
            bottom.list.frame().request().host().live_frames().leave();
        }
    }

    fn top(&mut self) -> &mut ReadyList {
        let top = self.stack.last_mut();
        &mut top.expect("a kernel's call is below its callees").list
    }

    /// Does what a kernel of the call on top has left to do.
    fn attend(&mut self, mut running: Running, status: Status) {
        if status.is_call() {
            let arguments = self.top().take_left(&mut running);
            let timer = self.top().frame().time();
            self.forward(running, arguments);
            return drop(timer);
        }
        if status.is_later() {
            let top = self.stack.last_mut().expect("a kernel's call is there");
            return top.list.put_off(running, &mut self.scratch);
        }
        if status.is_flow() {
            let kernel = self.top().suspend(running);
            return match self.scratch.flow.take() {
                Some(Flow::Call(call)) => match call.target.index_in(kernel.frame().program()) {
                    Ok(_) => self.call(kernel, call),
                    Err(error) => self.complete(kernel, Err(error)),
                },
                Some(Flow::Loop(turns, values)) => {
                    let begun = guarded(|| looping(turns, values));
                    self.follow(kernel, begun.unwrap_or_else(Step::fail));
                }
                Some(Flow::Step(step)) => self.follow(kernel, step),
                None => unreachable!("the status says that there is one"),
            };
        }
        running.has_put(self.scratch.n_put);
        let failure = self.scratch.failure.take();
        let list = self.top();
        let failure = failure.map(|error| match status.is_skipped() {
            true => error,
            false => report(list.frame(), running.kernel(), error),
        });
        finish(list, running, Vec::new(), failure);
    }

    /// A kernel of the call on top asks for a function to be called with these of its operands.
    fn forward(&mut self, running: Running, arguments: Vec<AnyAsyncValue>) {
        let kernel = self.top().suspend(running);
        let callee = self.scratch.callee.take();
        let callee = callee.expect("the status says that there is one");
        self.call(kernel, Call::new(callee, arguments));
    }

    /// Runs a marked kernel of the call on top, with handles for operands.
    #[cold]
    fn run_marked(&mut self, running: Running) {
        let top = self.stack.last_mut().expect("there is a top");
        let (list, scratch) = (&mut top.list, &mut self.scratch);
        let frame = list.frame().clone();
        let kernel = running.kernel();
        let record = frame.shape().record(kernel);
        let aside = BorrowedOperands::new(record, list.handles(&running));
        let mut around = KernelEnv {
            program: frame.program(),
            request: frame.request(),
            topology: frame.topology(),
            frame: Some(&frame),
            kernel,
            is_marked: true,
            scratch,
        };
        let entrances = frame.topology().entrances();
        let mut status = Status::PLAIN;
        let values = guarded(|| {
            aside.run(|activation| {
                status = entrances.enter_any(activation, &mut around);
                outcome(status, record.n_results(), around.scratch)
            })
        });
        match values {
            // What it gives are the operands that it has left.
            Ok(values) if status.is_call() => self.forward(running, values),
            Ok(_) if status.is_flow() || status.is_later() => self.attend(running, status),
            Ok(values) => {
                let failure = self.scratch.failure.take();
                let failure = failure.map(|error| report(&frame, kernel, error));
                finish(self.top(), running, values, failure);
            }
            Err(panic) => {
                let error = report(&frame, kernel, panic);
                finish(self.top(), running, Vec::new(), Some(error));
            }
        }
    }

    /// A call has run as far as it could.
    fn end(&mut self, ended: InProgress) {
        match ended.returns {
            Returns::Nowhere => {}
            Returns::Kernel { kernel, held, then } => {
                let results = ended.list.frame().take_results();
                drop(ended.list);
                self.returned(kernel, held, then, results);
            }
            Returns::Detached { step, held, then } => {
                let results = ended.list.frame().take_results();
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
                Ok(step) => self.follow(kernel, step),
                Err(error) => self.complete(kernel, Err(error)),
            },
            None => self.complete(kernel, Ok(results)),
        }
    }

    /// Does what a kernel of the call on top asks for.
    fn follow(&mut self, kernel: Suspended, mut step: Step) {
        loop {
            let (results, then) = match step.0 {
                StepKind::Done(results) => return self.complete(kernel, Ok(results)),
                StepKind::Fail(error) => return self.complete(kernel, Err(error)),
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
                        Err(error) => return self.complete(kernel, Err(error)),
                    }
                }
                StepKind::Spawn(call, then) => match cancelled(kernel.frame()) {
                    Some(error) => return self.complete(kernel, Err(error)),
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
                    if let Some(error) = cancelled(kernel.frame()) {
                        return self.complete(kernel, Err(error));
                    }
                    (values, then)
                }
            };
            step = match guarded(|| then(results)) {
                Ok(step) => step,
                Err(error) => return self.complete(kernel, Err(error)),
            };
        }
    }

    /// Runs a function for a kernel of the call on top, whose results it gives.
    fn call(&mut self, kernel: Suspended, call: Call) {
        match begin_call(kernel.frame(), call) {
            Ok(Begun::Frame(frame, arguments)) => {
                let (held, then) = (arguments.clone(), None);
                self.enter(frame, arguments, Returns::Kernel { kernel, held, then });
            }
            Ok(Begun::Ended(results)) => self.complete(kernel, Ok(results)),
            Err(error) => self.complete(kernel, Err(error)),
        }
    }

    /// Publishes the results of a suspended kernel of the call on top, or its failure.
    fn complete(&mut self, kernel: Suspended, results: Result<Vec<AnyAsyncValue>, Error>) {
        let list = self.top();
        let running = list.resume(kernel);
        let n_results = list.frame().shape().record(running.kernel()).n_results() as usize;
        let results = results.and_then(|results| match results.len() {
            n_found if n_found == n_results => Ok(results),
            // Nobody can tell which result is which.
            n_found => Err(wrong_result_count(n_found, n_results)),
        });
        match results {
            Ok(results) => finish(list, running, results, None),
            Err(error) => {
                let error = report(list.frame(), running.kernel(), error);
                finish(list, running, Vec::new(), Some(error));
            }
        }
    }

    /// Lets a control kernel return before its results are there; its steps go on as tasks.
    fn detach(&mut self, kernel: Suspended, values: Vec<AnyAsyncValue>, wake: Wake, then: Resume) {
        let record = kernel.frame().shape().record(kernel.kernel());
        let (step, handles) = Detached::new(&kernel, record.n_results() as usize);
        step.wait(values, wake, then);
        self.complete(kernel, Ok(handles));
    }
}

impl Drop for Executor {
    /// A panic of our own ends everything. What is in the slots of these calls is not known then.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for call in &self.stack {
                call.list.frame().give_up();
            }
        }
        self.leave();
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
    /// It ran in order, as far as it goes at once: these are its results.
    Ended(Vec<AnyAsyncValue>),
}

/// Begins a call from inside of `caller`.
fn begin_call(caller: &Arc<Frame>, call: Call) -> Result<Begun, Error> {
    let Call {
        target,
        arguments: mut values,
    } = call;
    let function = target.function(caller.program())?;
    let (request, depth) = (caller.request(), caller.depth() + 1);
    if run_in_order(&function, request, depth, &mut values)? {
        return Ok(Begun::Ended(values));
    }
    let frame = function.frame(request, depth)?;
    Ok(Begun::Frame(frame, values))
}

/// Runs a function as far as it goes without waiting. The values are its arguments, and then its
/// results.
pub(crate) fn call(
    function: &Function,
    request: &Arc<RequestContext>,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<(), Error> {
    match run_in_order(function, request, 0, values) {
        Ok(false) => count(function, request, values),
        result => result.map(|_| ()),
    }
}

/// Runs a function by counting, as far as it goes without waiting. The values are its arguments, and then its results.
#[cfg_attr(not(tfrt_for_size), inline(never))]
fn count(
    function: &Function,
    request: &Arc<RequestContext>,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<(), Error> {
    let mut frame = Some(function.frame(request, 0)?);
    // The tasks of the call stay on this thread until this has ended.
    request.queue().run_here(&mut || {
        if let Some(frame) = frame.take() {
            execute(&frame, std::mem::take(values));
            *values = frame.take_results();
        }
    });
    Ok(())
}

/// Runs a call that `depth` calls are around in order, and tells whether it could. The
/// values are its arguments, and if so its results after that.
#[cfg_attr(not(tfrt_for_size), inline(always))]
#[cfg_attr(tfrt_for_size, inline(never))]
fn run_in_order(
    function: &Function,
    request: &Arc<RequestContext>,
    depth: u32,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<bool, Error> {
    function.check_arguments(values)?;
    match route::of_call(function.topology(), request, depth, values) {
        Route::InOrder => function.run_inline(request, depth, values),
        Route::TryInOrder => try_order(function, request, depth, values)?,
        Route::InOrderLater => {
            *values = function.run_later(request, depth, std::mem::take(values));
        }
        Route::Counted => return Ok(false),
    }
    Ok(true)
}

/// Runs a call in order as long as all results are there, and counts from the first that is to come.
#[inline]
fn try_order(
    function: &Function,
    request: &Arc<RequestContext>,
    depth: u32,
    values: &mut Vec<AnyAsyncValue>,
) -> Result<(), Error> {
    let busy = Busier::new(request.host());
    let left = function.attempt(request, depth, values)?;
    if let Some(left) = left {
        let frame = function.numbered_frame(request, depth, left.number)?;
        let mut left = Some(left);
        // As in `call`.
        request.queue().run_here(&mut || {
            if let Some(left) = left.take() {
                go_on_counting(&frame, *left);
                *values = frame.take_results();
            }
        });
    }
    drop(busy);
    Ok(())
}

/// Starts a function as a task; what can't be started has errors for results.
fn spawn_call(caller: &Arc<Frame>, call: Call) -> Vec<AnyAsyncValue> {
    let Call { target, arguments } = call;
    let function = match target.function(caller.program()) {
        Ok(function) => function,
        Err(error) => return vec![AnyAsyncValue::from_error(error)],
    };
    function
        .spawn_at(caller.request(), caller.depth() + 1, arguments)
        .unwrap_or_else(|error| function.all_failed(&error))
}

impl ReadyGroup {
    /// Turns into a task that runs the kernels.
    fn into_task(self) -> Task {
        Task::new(move || Executor::with(self.into_list()).drive())
    }
}

/// Runs what is ready in a list until there is something to attend to; a panic becomes an error.
#[inline]
fn run_guarded(
    list: &mut ReadyList,
    scratch: &mut Scratch,
    is_watched: bool,
) -> Result<Pause, Error> {
    guarded(|| match is_watched {
        true => list.run::<true>(scratch),
        false => list.run::<false>(scratch),
    })
}

/// The stream of a kernel, if anybody asks.
#[inline]
fn stream_of(frame: &Frame, kernel: u32) -> u32 {
    let shape = frame.shape();
    match shape.has_one_stream() {
        true => shape.root_stream(),
        false => shape.stream(kernel),
    }
}

/// Calls into code of a kernel's author.
///
/// # Errors
///
/// `Internal`, with the message of its panic, if it panics.
#[inline]
pub fn guarded<R>(f: impl FnOnce() -> R) -> Result<R, Error> {
    let inside = IN_KERNEL.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IN_KERNEL.set(inside);
    result.map_err(panicked)
}

#[cold]
fn panicked(payload: Box<dyn std::any::Any + Send>) -> Error {
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
}

/// Drops what somebody who only listens has panicked with, whose own drop may panic.
pub(crate) fn forget_panic(result: std::thread::Result<()>) {
    if let Err(payload) = result {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }
}

thread_local! {
    static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    static CONTINUATION_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Tells whether this thread is inside a kernel, whose panics become errors: for panic hooks.
pub fn is_in_kernel() -> bool {
    IN_KERNEL.get()
}

/// Returns what a run with this status has left in its slots: results, or operands of a call.
fn outcome(status: Status, n_results: u32, scratch: &Scratch) -> Outcome {
    match status {
        Status::PLAIN => Outcome::Put(n_results),
        status if status.is_call() => Outcome::Left(scratch.n_taken),
        _ => Outcome::Put(scratch.n_put),
    }
}

/// The error that becomes the results of a kernel that is not run since its request was cancelled: that
/// of the failed strict operand with the highest number, else the cancellation. Releases the operands.
#[cold]
fn reason_to_skip(around: &KernelEnv<'_>, activation: Activation<'_>) -> Error {
    let cursor = Cursor::new(activation);
    let signature = &around.topology.entry(around.kernel).signature;
    let failed = cursor.find_last(|index, operand| {
        let error = operand.error()?;
        signature.is_strict(index as usize).then(|| error.clone())
    });
    let reason = failed.or_else(|| around.request.cancellation().cloned());
    reason.unwrap_or_else(|| Error::cancelled("Cancelled"))
}

/// Publishes the results of a kernel: those that its run has put, or else `values`, or else `failure`.
fn finish(
    list: &mut ReadyList,
    mut running: Running,
    values: Vec<AnyAsyncValue>,
    failure: Option<Error>,
) {
    let kernel = running.kernel();
    let mut values = values.into_iter();
    while let Some((right, put)) = list.next_result(&mut running) {
        let value = put.or_else(|| values.next()).unwrap_or_else(|| {
            let missing = || Error::internal("the kernel gave too few results");
            AnyAsyncValue::from_error(failure.clone().unwrap_or_else(missing))
        });
        publish(list, Some(kernel), right, value);
    }
    list.finish(running);
}

/// Fills a register and counts its users down, now or when the value is there.
fn publish(list: &mut ReadyList, kernel: Option<u32>, right: Right, value: AnyAsyncValue) {
    if value.is_plain() {
        return publish_settled(list, right, value);
    }
    let value = value.settled();
    if !value.is_settled() {
        return publish_pending(list, right, value);
    }
    // Only now is it certain whether the value is an error: it may have settled just before.
    let value = match kernel {
        Some(kernel) => located(list.frame(), kernel, value),
        None => value,
    };
    publish_settled(list, right, value);
}

#[inline]
fn publish_settled(list: &mut ReadyList, right: Right, value: AnyAsyncValue) {
    let filled = list.fill(right, value);
    list.count_all(filled);
}

/// Publishes a value that is still to come: leaves the register to the continuation, or to whoever
/// fails it from outside.
///
/// Users that can do with a handle start now, with one of ours, so that it can be failed too. All
/// others, and whoever awaits a result of the function, hear of the value by [`resume`], which names
/// the kernel in the error of a promise that was dropped.
fn publish_pending(list: &mut ReadyList, right: Right, value: AnyAsyncValue) {
    let shared = list.frame().share();
    let register = right.register();
    let (_, users) = list.frame().shape().definition(register);
    if !users.has_early() {
        list.leave(right);
    } else {
        publish_handle(list, right);
    }
    value.when_settled(move |value| {
        continue_with(shared, move |frame| resume(frame, register, value));
    });
    fail_if_abandoned(list.frame(), register);
}

/// Whoever gave the request up may have looked before the register was left.
#[inline]
fn fail_if_abandoned(frame: &Arc<Frame>, register: u32) {
    if let Some(reason) = frame.request().abandoned() {
        let error = AnyAsyncValue::from_error(reason.clone());
        resume(frame.share(), register, error);
    }
}

/// Fills a register with a handle of ours, for those users that can do with one; the others follow
/// when its promise, which is left, is kept.
#[cold]
fn publish_handle(list: &mut ReadyList, right: Right) {
    let register = right.register();
    let (promise, handle) = AnyAsyncValue::pending();
    let mut filled = list.fill(right, handle.clone());
    list.frame().leave_promise(register, promise);
    list.count_early(&mut filled);
    let (shared, stream) = (list.frame().share(), list.stream());
    handle.when_settled(move |_| {
        continue_with(shared, move |frame| {
            let mut list = ReadyList::new(frame.into_local(), stream);
            list.count_all(filled);
            Executor::with(list).drive();
        });
    });
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

/// Gives an error its place, and reports it, if it is the own one of a kernel of this frame.
#[inline]
fn located(frame: &Frame, kernel: u32, value: AnyAsyncValue) -> AnyAsyncValue {
    locate(frame.topology(), kernel, value, || frame.context_of(kernel))
}

/// Gives an error its place, and reports it, if it is the own one of a kernel in this `context`.
#[inline]
pub(crate) fn locate(
    topology: &FunctionPlan,
    kernel: u32,
    value: AnyAsyncValue,
    context: impl FnOnce() -> ExecutionContext,
) -> AnyAsyncValue {
    if value.is_plain() {
        return value;
    }
    match value.error() {
        // An error that has a kernel's name was reported when it got it.
        Some(error) if error.kernel().is_none() => {
            let error = error.clone();
            // A promise may be dropped before its value is known to be this kernel's.
            let error = match &topology.entry(kernel).origin {
                Some(origin) => origin.name(error),
                None => error,
            };
            AnyAsyncValue::from_error(context().report_once(error))
        }
        _ => value,
    }
}

/// Gives an error its place and its kernel, and tells the diagnostic handler, once.
fn report(frame: &Frame, kernel: u32, error: Error) -> Error {
    frame.context_of(kernel).report_once(error)
}
