//! One call of a function: its registers, its program and its request.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use tfrt_async::queue::LocalTask;
use tfrt_async::{AnyAsyncValue, AnyPromise, Error};

use super::later::{ClaimedTask, FrameTasks, Listed};
use super::plan::dataflow::DataflowPlan;
use super::plan::function::FunctionPlan;
use super::ready::{Group, ReadyQueue};
use super::reason_to_skip;
use super::registers::{Arguments, Confined, Fill, Filled, Ready, ReadyStack, Registers, Started};
use super::route::{self, Streams};
use super::slots::Cursor;
use crate::kernel::{KernelEnv, Scratch, Status};
use crate::program::ProgramRef;
use crate::request::{ExecutionContext, RequestContext};

/// One call of a function.
///
/// It is confined to its thread (an `Arc` that is not `Send`) until [`Frame::share`] gives a
/// [`SharedFrame`], which is.
pub(crate) struct Frame {
    registers: Registers,
    /// Tells its rights from those of other calls.
    number: u64,
    program: ProgramRef,
    function: u32,
    request: Arc<RequestContext>,
    depth: u32,
    /// How long threads were busy with the call, in nanoseconds, if that is to be learned.
    busy: Option<AtomicU64>,
    /// The promises of handles that stand in registers.
    promises: Mutex<Vec<(u32, AnyPromise)>>,
    together: FrameTasks,
}

/// The right to settle a register that was left.
pub(crate) enum Claim {
    /// It is empty.
    Fill(Right),
    /// It holds a handle that this promise settles.
    Promise(AnyPromise),
}

impl Claim {
    /// The right to fill the register, if it is empty.
    pub(super) fn into_right(self) -> Option<Right> {
        match self {
            Claim::Fill(right) => Some(right),
            Claim::Promise(_) => None,
        }
    }
}

impl Frame {
    /// Makes the frame for one call.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the host's allocator has no memory for it.
    #[allow(clippy::arc_with_non_send_sync, reason = "confined until `share`")]
    pub(crate) fn new(
        program: ProgramRef,
        function: u32,
        request: Arc<RequestContext>,
        depth: u32,
        number: Option<u64>,
    ) -> Result<Arc<Frame>, Error> {
        let shape = program.shape(function)?.clone();
        let size_bytes = Registers::size_bytes(&shape);
        let Some(registers) = Registers::new(shape, request.host().allocator()) else {
            return Err(program.no_memory(function, size_bytes));
        };
        let topology = program.topology(function);
        let is_timed = topology.cost.is_unknown() && route::is_timed(topology, &request);
        Ok(Arc::new(Frame {
            busy: is_timed.then(AtomicU64::default),
            registers,
            number: number.unwrap_or_else(next_call_number),
            program,
            function,
            request,
            depth,
            promises: Mutex::default(),
            together: FrameTasks::default(),
        }))
    }

    pub(crate) fn program(&self) -> &ProgramRef {
        &self.program
    }

    #[inline]
    pub(crate) fn topology(&self) -> &FunctionPlan {
        self.program.topology(self.function)
    }

    #[inline]
    pub(crate) fn shape(&self) -> &DataflowPlan {
        self.registers.shape()
    }

    pub(crate) fn request(&self) -> &Arc<RequestContext> {
        &self.request
    }

    /// How many calls are around this one.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Takes the time that this thread is busy with the call, until it is dropped.
    pub(crate) fn time(self: &Arc<Self>) -> Option<Timer> {
        let start = self.busy.is_some().then(Instant::now)?;
        let frame = self.clone();
        Some(Timer { frame, start })
    }

    /// A thread has left in the middle: nothing is known of the slots any more.
    pub(crate) fn give_up(&self) {
        self.registers.give_up();
    }

    /// Lets other threads in.
    pub(crate) fn share(self: &Arc<Self>) -> SharedFrame {
        if self.registers.share() {
            self.together.share(self);
            self.request.host().live_frames().add(self);
        }
        SharedFrame(self.clone())
    }

    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.registers.is_shared()
    }

    #[inline]
    pub(super) fn together(&self) -> &FrameTasks {
        &self.together
    }

    /// The right to fill a register that was left to a task, if it was.
    ///
    /// # Safety
    ///
    /// If `kernel`, whose only result this register is, was put off, it was to the caller.
    #[inline]
    pub(super) unsafe fn take_up(&self, kernel: u32, register: u32) -> Option<Right> {
        let call = self.number;
        // SAFETY: the caller says so.
        let fill = unsafe { self.registers.take_up(kernel, register) }?;
        Some(Right { call, fill })
    }

    /// See [`ReadyList::put_off`].
    #[inline]
    fn put_off(&self, running: Running, scratch: &mut Scratch) -> LocalTask<'static> {
        self.check(running.call);
        // SAFETY: a right of these registers, which goes to the task.
        unsafe { self.registers.suspend(&running.started) };
        let task = scratch.task.take();
        task.expect("the status says that there is one")
    }

    /// Tells whether lists of the frame run by nothing but counts, if nobody watches.
    #[inline]
    pub(super) fn is_simple(&self) -> bool {
        Streams::of(self) == Streams::One && self.registers.confined().is_some()
    }

    /// Leaves a register to be filled by whoever claims it.
    pub(super) fn leave(&self, right: Right) {
        self.check(right.call);
        // SAFETY: a right of these registers.
        unsafe { self.registers.leave(right.fill) };
    }

    fn check(&self, call: u64) {
        assert!(
            call == self.number,
            "a right of one call is none of another"
        );
    }

    /// Leaves the value behind a handle that stands in a register to whoever claims it.
    pub(crate) fn leave_promise(&self, register: u32, promise: AnyPromise) {
        self.promises().push((register, promise));
    }

    fn promises(&self) -> MutexGuard<'_, Vec<(u32, AnyPromise)>> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the right to settle a register that was left, if nobody took it before.
    pub(crate) fn claim(&self, register: u32) -> Option<Claim> {
        if let Some(fill) = self.registers.claim(register) {
            let call = self.number;
            return Some(Claim::Fill(Right { call, fill }));
        }
        let mut promises = self.promises();
        let index = promises.iter().position(|(left, _)| *left == register)?;
        Some(Claim::Promise(promises.swap_remove(index).1))
    }

    /// The registers that are left to be claimed at this moment.
    pub(crate) fn awaited_registers(&self) -> Vec<u32> {
        let n_registers = self.shape().n_registers() as u32;
        let empty = (0..n_registers).filter(|register| self.registers.is_awaited(*register));
        let handles = self.promises();
        empty
            .chain(handles.iter().map(|(register, _)| *register))
            .collect()
    }

    /// Gives the results to the caller, once: see [`Registers::take_results`].
    pub(crate) fn take_results(&self) -> Vec<AnyAsyncValue> {
        let missing = || {
            let error = Error::internal("a result was neither computed nor awaited");
            AnyAsyncValue::from_error(error)
        };
        if self.together.has_tasks() && !self.is_shared() {
            self.registers.promise_results();
        }
        let results = self.registers.take_results();
        results
            .map(|result| result.unwrap_or_else(missing))
            .collect()
    }

    /// Where a kernel stands.
    pub(crate) fn context_of(&self, kernel: u32) -> ExecutionContext {
        ExecutionContext::for_kernel(&self.program, &self.request, self.topology(), kernel)
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if let Some(busy) = &self.busy {
            // Ordering: `&mut self`.
            let busy = Duration::from_nanos(busy.load(Ordering::Relaxed));
            let n_kernels = self.shape().n_kernels();
            self.topology().cost.learn_counted(busy, n_kernels);
        }
        if self.registers.is_shared() {
            self.request.host().live_frames().remove(self);
        }
    }
}

/// Takes the time until it is dropped: see [`Frame::time`].
pub(crate) struct Timer {
    frame: Arc<Frame>,
    start: Instant,
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(busy) = &self.frame.busy {
            let nanoseconds = self.start.elapsed().as_nanos() as u64;
            // Ordering: a sum, read when the frame is dropped.
            busy.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }
}

/// A frame that other threads may reach.
#[derive(Clone)]
pub(crate) struct SharedFrame(Arc<Frame>);

// SAFETY: `share` came first, so the registers' counts are read-modify-writes, their list of
// forwarding values no longer changes, and slots and promises are touched only by holders of rights
// that exist once each and whose counts order the accesses (see `registers`). Everything else in a
// frame is `Send` and `Sync`.
unsafe impl Send for SharedFrame {}
// SAFETY: as for `Send`.
unsafe impl Sync for SharedFrame {}

impl SharedFrame {
    /// The frame, for use on this thread.
    pub(crate) fn into_local(self) -> Arc<Frame> {
        self.0
    }

    pub(crate) fn local(&self) -> &Arc<Frame> {
        &self.0
    }
}

/// A [`SharedFrame`] that keeps nothing alive.
pub(crate) struct WeakFrame(Weak<Frame>);

// SAFETY: it gives out shared frames only, since it is made of one; see `SharedFrame`.
unsafe impl Send for WeakFrame {}
// SAFETY: as for `Send`.
unsafe impl Sync for WeakFrame {}

impl WeakFrame {
    /// Remembers a frame that was just shared.
    pub(super) fn new(frame: &Arc<Frame>) -> Self {
        assert!(frame.registers.is_shared(), "only shared frames are listed");
        WeakFrame(Arc::downgrade(frame))
    }

    /// The frame, if it still lives.
    pub(crate) fn upgrade(&self) -> Option<SharedFrame> {
        self.0.upgrade().map(SharedFrame)
    }
}

/// Numbers calls: none is given twice.
pub(super) fn next_call_number() -> u64 {
    /// So many numbers are taken at once for one thread.
    const BLOCK: u64 = 1 << 24;
    static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let next = NEXT.get();
    let number = if next.is_multiple_of(BLOCK) {
        // Ordering: numbers order nothing.
        NEXT_BLOCK.fetch_add(BLOCK, Ordering::Relaxed)
    } else {
        next
    };
    NEXT.set(number + 1);
    number
}

/// The right to fill a register, in the call of this number.
pub(crate) struct Right {
    call: u64,
    fill: Fill,
}

impl Right {
    pub(crate) fn register(&self) -> u32 {
        self.fill.register()
    }
}

/// The right to count down the users of a filled register, in the call of this number.
#[must_use = "users that are not counted down never run"]
pub(crate) struct FilledRight {
    call: u64,
    filled: Filled,
}

/// The right to a started kernel's results, in the call of this number.
pub(crate) struct Running {
    call: u64,
    started: Started,
}

impl Running {
    #[inline]
    pub(crate) fn kernel(&self) -> u32 {
        self.started.kernel()
    }

    /// The kernel's run has put so many results.
    #[inline]
    pub(crate) fn has_put(&mut self, n_put: u32) {
        self.started.has_put(n_put);
    }
}

/// A [`Running`] kernel whose results are to come from a call.
pub(crate) struct Suspended {
    frame: Arc<Frame>,
    running: Running,
}

impl Suspended {
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    pub(crate) fn kernel(&self) -> u32 {
        self.running.kernel()
    }
}

/// Tasks of kernels that were put off, and are not in the queue yet.
type Begun = SmallVec<[LocalTask<'static>; 4]>;

/// The most tasks that wait until the queue gets them together.
const MAX_BEGUN: usize = 32;

/// The ready kernels of one call on one thread.
pub(crate) struct ReadyList {
    frame: Listed,
    // Invariant: rights of the frame's registers.
    queue: ReadyQueue<Ready>,
    confined: Stacked,
    /// The kernel with which the run begins.
    first: Option<ClaimedTask>,
    /// Tasks of kernels that were put off, which go to the queue together.
    begun: Begun,
    // Invariant: a kernel that was started from this list, whose right nobody else has.
    running: Option<u32>,
    streams: Streams,
}

/// The state that [`run_confined`] leaves in the frame when it ends, be it by a panic.
struct Stacked {
    /// Ready kernels of the frame, which come after those of the queue.
    // Invariant: it came from the frame's registers.
    stack: ReadyStack,
    /// A kernel that runs, or [`Stacked::NONE`].
    // Invariant: as that of [`ReadyList::running`].
    running: u32,
}

impl Stacked {
    const NONE: u32 = u32::MAX;

    const EMPTY: Stacked = Stacked {
        stack: ReadyStack::EMPTY,
        running: Self::NONE,
    };
}

/// Ready kernels of one stream, to be run by a task.
pub(crate) struct ReadyGroup {
    frame: SharedFrame,
    // Invariant: rights of the frame's registers.
    group: Group<Ready>,
}

impl ReadyGroup {
    /// A list that begins with these kernels.
    pub(crate) fn into_list(self) -> ReadyList {
        let frame = self.frame.into_local();
        ReadyList {
            streams: Streams::of(&frame),
            frame: Listed::new(frame),
            queue: ReadyQueue::of_group(self.group),
            confined: Stacked::EMPTY,
            first: None,
            begun: Begun::new(),
            running: None,
        }
    }
}

/// Why [`ReadyList::run`] has returned.
pub(crate) enum Pause {
    /// Nothing is ready here.
    Empty,
    /// Kernels of other streams have become ready, which belong elsewhere.
    Elsewhere,
    /// The results of this kernel are not published; so it has returned.
    Unsettled(Running, Status),
    /// The request was cancelled before this kernel was run.
    Cancelled(Running, Error),
    /// Any one operand has started it.
    Marked(Running),
    /// The call has been shared, and there may be more to run.
    Shared,
}

impl ReadyList {
    /// An empty list, on a thread that runs `stream`.
    pub(crate) fn new(frame: Arc<Frame>, stream: u32) -> Self {
        ReadyList {
            streams: Streams::of(&frame),
            frame: Listed::new(frame),
            queue: ReadyQueue::new(stream),
            confined: Stacked::EMPTY,
            first: None,
            begun: Begun::new(),
            running: None,
        }
    }

    #[inline]
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    pub(crate) fn stream(&self) -> u32 {
        self.queue.stream()
    }

    /// Begins the call: lists the kernels without operands. The rights to fill the arguments follow
    /// with [`Self::next_argument`].
    pub(crate) fn begin(&mut self) -> Arguments {
        let (registers, queue, streams) = (&self.frame.registers, &mut self.queue, self.streams);
        registers.begin(|ready| push(registers, queue, streams, ready))
    }

    /// Begins the call with all its arguments, settled, if nothing else is to be thought of; gives them
    /// back if not.
    pub(crate) fn begin_given(
        &mut self,
        arguments: Vec<AnyAsyncValue>,
    ) -> Result<(), Vec<AnyAsyncValue>> {
        let registers = &self.frame.registers;
        if self.streams != Streams::One || registers.confined().is_none() {
            return Err(arguments);
        }
        self.confined.stack = registers.begin_given(arguments);
        Ok(())
    }

    /// The right to fill the next argument of a call that this list has begun.
    pub(crate) fn next_argument(&self, arguments: &mut Arguments) -> Option<Right> {
        let fill = self.frame.registers.next_argument(arguments)?;
        let call = self.frame.number;
        Some(Right { call, fill })
    }

    /// Between two kernels: hands over what belongs elsewhere, and moves to another stream if there
    /// is nothing left here.
    pub(crate) fn turn(&mut self) -> impl ExactSizeIterator<Item = ReadyGroup> {
        let groups = self.queue.turn().into_iter();
        groups.map(|group| ReadyGroup {
            frame: self.frame.share(),
            group,
        })
    }

    /// Runs ready kernels, the last to become ready first, until there is something to attend to.
    ///
    /// # Panics
    ///
    /// If a kernel does. Its operands are released then; see [`Self::panicked`].
    pub(crate) fn run<const WATCHED: bool>(&mut self, scratch: &mut Scratch) -> Pause {
        let _timer = self.frame.time();
        loop {
            match self.run_some::<WATCHED>(scratch) {
                Pause::Unsettled(running, status) if status.is_later() => {
                    self.put_off(running, scratch);
                }
                Pause::Shared => {}
                pause => {
                    self.queue_begun();
                    return pause;
                }
            }
        }
    }

    /// Gives the tasks that have begun to the queue.
    #[inline]
    fn queue_begun(&mut self) {
        if !cfg!(tfrt_for_size) && !self.begun.is_empty() {
            queue_all(&self.frame, &mut self.begun);
        }
    }

    #[inline(always)]
    fn run_some<const WATCHED: bool>(&mut self, scratch: &mut Scratch) -> Pause {
        let frame: &Arc<Frame> = &self.frame;
        let registers = &frame.registers;
        let mut around = KernelEnv {
            program: &frame.program,
            request: &frame.request,
            topology: frame.topology(),
            frame: Some(frame),
            kernel: 0,
            is_marked: false,
            scratch,
        };
        let request: &RequestContext = &frame.request;
        let shape: &DataflowPlan = registers.shape();
        let is_simple = self.streams == Streams::One && !WATCHED;
        if let Some(confined) = is_simple.then(|| registers.confined()).flatten() {
            let stacked = &mut self.confined;
            for ready in self.queue.take_here() {
                // SAFETY: the list's rights are those of its frame.
                unsafe { confined.push(&mut stacked.stack, ready) };
            }
            let first = &mut self.first;
            return match first.is_some() || frame.together.has_tasks() {
                true => run_confined::<true>(confined, frame, stacked, first, &mut around),
                false => run_confined::<false>(confined, frame, stacked, first, &mut around),
            };
        }
        if !self.confined.stack.is_empty() {
            // SAFETY: the stack's rights are those of the frame.
            let below = unsafe { registers.unstack(&mut self.confined.stack) };
            self.queue.put_below(below);
        }
        if WATCHED {
            request.begin_watch();
        }
        let entrances = around.topology.entrances().list();
        let call = frame.number;
        let streams = self.streams;
        let queue = &mut self.queue;
        // The last kernel that became ready stays here: it is the next.
        let mut next: Option<Ready> = None;
        let pause = loop {
            if queue.has_others() {
                break Pause::Elsewhere;
            }
            let Some(ready) = next.take().or_else(|| queue.pop()) else {
                break Pause::Empty;
            };
            let kernel = ready.kernel();
            if !cfg!(tfrt_for_size) && !self.begun.is_empty() && !shape.only_begins(kernel) {
                // The kernel may be a long one.
                queue_all(frame, &mut self.begun);
            }
            around.kernel = kernel;
            let record = shape.counted_record(kernel);
            // SAFETY: the list's rights are those of its frame; the record is the kernel's.
            let (right, activation) = unsafe { registers.start(ready, record.record()) };
            let watch = WATCHED.then(|| request.watch(around.topology, kernel, call));
            let Some(activation) = activation else {
                let running = Running {
                    call,
                    started: right,
                };
                break match request.cancellation() {
                    Some(reason) => Pause::Cancelled(running, reason.clone()),
                    None => Pause::Marked(running),
                };
            };
            if request.is_cancelled() {
                let reason = reason_to_skip(&around, activation);
                let running = Running {
                    call,
                    started: right,
                };
                break Pause::Cancelled(running, reason);
            }
            // Should the kernel panic, this is where its right is found.
            self.running = Some(kernel);
            // SAFETY: the record and the entrances are of the same function.
            let status = unsafe { entrances.enter(activation, &mut around) };
            self.running = None;
            if status != Status::PLAIN {
                let mut running = Running {
                    call,
                    started: right,
                };
                if status.is_call() {
                    let first = around.scratch.n_taken;
                    // SAFETY: the status says so, and nobody else has the kernel's right.
                    unsafe { registers.leave_operands(&mut running.started, first) };
                }
                break Pause::Unsettled(running, status);
            }
            // Whoever waits for a result that leaves the call may run at once, and is none of this kernel.
            drop(watch);
            let ready = |ready: Ready| match streams {
                Streams::One => {
                    if let Some(before) = next.replace(ready) {
                        queue.push_here(before);
                    }
                }
                Streams::OnThreads if shape.only_begins(ready.kernel()) => queue.push_here(ready),
                Streams::Several | Streams::OnThreads => {
                    queue.push(shape.stream(ready.kernel()), ready);
                }
            };
            // SAFETY: the right was made from this list's; the record is its kernel's.
            unsafe { registers.finish_plain(right, record, ready) };
        };
        if let Some(ready) = next {
            queue.push_here(ready);
        }
        pause
    }

    /// Starts a ready kernel that ran before the call was counted: releases its operands, and gives the right to
    /// its results.
    ///
    /// # Panics
    ///
    /// If the kernel is not ready, or is marked.
    pub(crate) fn skip(&mut self, kernel: u32) -> Running {
        let registers = &self.frame.registers;
        if !self.confined.stack.is_empty() {
            // SAFETY: the stack's rights are those of the frame.
            let below = unsafe { registers.unstack(&mut self.confined.stack) };
            self.queue.put_below(below);
        }
        let ready = self.queue.take(|ready| ready.kernel() == kernel);
        let ready = ready.expect("the kernels in front of it have their results");
        let record = registers.shape().record(kernel);
        // SAFETY: the list's rights are those of its frame; the record is the kernel's.
        let (started, activation) = unsafe { registers.start(ready, record) };
        let activation = activation.expect("the kernel is not marked");
        drop(Cursor::new(activation));
        Running {
            call: self.frame.number,
            started,
        }
    }

    /// The right to the results of the kernel that has panicked in [`Self::run`].
    pub(crate) fn panicked(&mut self) -> Option<Running> {
        let stacked = std::mem::replace(&mut self.confined.running, Stacked::NONE);
        let kernel = match self.running.take() {
            Some(kernel) => kernel,
            None if stacked != Stacked::NONE => stacked,
            None => return None,
        };
        let call = self.frame.number;
        // SAFETY: the kernel was started from this list, and its right was lost in the panic.
        let started = unsafe { self.frame.registers.started(kernel) };
        Some(Running { call, started })
    }

    fn check(&self, call: u64) {
        self.frame.check(call);
    }

    /// The operands of a marked kernel that was started.
    pub(crate) fn handles(&self, running: &Running) -> Vec<AnyAsyncValue> {
        self.check(running.call);
        self.frame.registers.handles(&running.started)
    }

    /// Takes the operands that the run of a kernel has left.
    pub(crate) fn take_left(&self, running: &mut Running) -> Vec<AnyAsyncValue> {
        self.check(running.call);
        // SAFETY: a right of these registers.
        unsafe { self.frame.registers.take_left(&mut running.started) }
    }

    /// The right to fill the next result of a kernel, in order, and its value if its run has put it.
    pub(crate) fn next_result(
        &self,
        running: &mut Running,
    ) -> Option<(Right, Option<AnyAsyncValue>)> {
        self.check(running.call);
        // SAFETY: a right of these registers.
        let (fill, value) = unsafe { self.frame.registers.next_result(&mut running.started) }?;
        let call = running.call;
        Some((Right { call, fill }, value))
    }

    /// All results of a kernel are filled or left.
    pub(crate) fn finish(&self, running: Running) {
        self.check(running.call);
        // SAFETY: a right of these registers.
        unsafe { self.frame.registers.finish(running.started) };
    }

    /// Fills the only result of a kernel with a value in place, and counts its users down.
    #[inline]
    pub(super) fn fill_in_place(&mut self, right: Right, kernel: u32, value: AnyAsyncValue) {
        self.check(right.call);
        let (registers, queue, streams) = (&self.frame.registers, &mut self.queue, self.streams);
        // SAFETY: a right of these registers.
        unsafe {
            registers.fill_in_place(right.fill, kernel, value, |ready| {
                push(registers, queue, streams, ready)
            });
        }
    }

    /// Puts a kernel off: its result is left to its task, which is queued.
    pub(super) fn put_off(&mut self, running: Running, scratch: &mut Scratch) {
        let task = self.frame.put_off(running, scratch);
        if cfg!(tfrt_for_size) || self.streams != Streams::OnThreads {
            return self.frame.request.queue().add_local_task(task);
        }
        self.begun.push(task);
        if self.begun.len() == MAX_BEGUN {
            queue_all(&self.frame, &mut self.begun);
        }
    }

    /// Begins with a task, which the list is to run. The frame [has simple runs](Frame::is_simple).
    pub(super) fn begin_with(&mut self, task: ClaimedTask) {
        self.first = Some(task);
    }

    /// The results of a kernel are to come from a call.
    pub(crate) fn suspend(&self, running: Running) -> Suspended {
        self.check(running.call);
        // SAFETY: a right of these registers.
        unsafe { self.frame.registers.suspend(&running.started) };
        Suspended {
            frame: self.frame.clone(),
            running,
        }
    }

    /// Takes up a kernel of this call whose results have come.
    pub(crate) fn resume(&self, suspended: Suspended) -> Running {
        let running = suspended.running;
        self.check(running.call);
        // SAFETY: a right of these registers.
        unsafe { self.frame.registers.resume(&running.started) };
        running
    }

    /// Fills a register: see [`Registers::fill`].
    pub(crate) fn fill(&self, right: Right, value: AnyAsyncValue) -> FilledRight {
        self.check(right.call);
        let call = right.call;
        // SAFETY: a right of these registers.
        let filled = unsafe { self.frame.registers.fill(right.fill, value) };
        FilledRight { call, filled }
    }

    /// Counts down users that can do with a handle, and lists those that are ready.
    pub(crate) fn count_early(&mut self, right: &mut FilledRight) {
        self.check(right.call);
        let (registers, queue, streams) = (&self.frame.registers, &mut self.queue, self.streams);
        // SAFETY: a right of these registers.
        unsafe {
            registers.count_early(&mut right.filled, |ready| {
                push(registers, queue, streams, ready)
            });
        }
    }

    /// Counts down all users that have not been, and lists those that are ready.
    pub(crate) fn count_all(&mut self, right: FilledRight) {
        self.check(right.call);
        let (registers, queue, streams) = (&self.frame.registers, &mut self.queue, self.streams);
        // SAFETY: a right of these registers.
        unsafe {
            registers.count_all(right.filled, |ready| push(registers, queue, streams, ready));
        }
    }

    /// Leaves a register to be filled by whoever claims it.
    pub(crate) fn leave(&self, right: Right) {
        self.frame.leave(right);
    }
}

/// [`ReadyList::run`] where there is nothing to think of but counts: one thread, one stream.
///
/// With `TASKS`, tasks of the call may be in line, and are run here as soon as no kernel is ready and
/// they are next. Then whatever calls out of here may share the call, which ends this.
#[inline(never)]
fn run_confined<const TASKS: bool>(
    registers: Confined<'_>,
    frame: &Arc<Frame>,
    stacked: &mut Stacked,
    first: &mut Option<ClaimedTask>,
    around: &mut KernelEnv<'_>,
) -> Pause {
    let request: &RequestContext = around.request;
    let entrances = around.topology.entrances().list();
    let right = |kernel| Running {
        call: frame.number,
        // SAFETY: used once for a kernel that was started below, and that has returned or not run.
        started: unsafe { registers.registers().started(kernel) },
    };
    /// A guard that writes the top of the stack and the running kernel back when it is dropped; until then both
    /// are in registers of the processor.
    struct Leaves<'l> {
        now: Stacked,
        to: &'l mut Stacked,
    }
    impl Drop for Leaves<'_> {
        #[inline(always)]
        fn drop(&mut self) {
            *self.to = std::mem::replace(&mut self.now, Stacked::EMPTY);
        }
    }
    let mut leaves = Leaves {
        now: std::mem::replace(stacked, Stacked::EMPTY),
        to: stacked,
    };
    let Stacked { stack, running } = &mut leaves.now;
    let mut walk = registers.walk();
    loop {
        // SAFETY: the list's rights are those of its frame.
        let top = unsafe { registers.start_top(stack, &mut walk) };
        let (kernel, record, status);
        if let Some((started, its_record, activation)) = top {
            (kernel, record) = (started, its_record);
            around.kernel = kernel;
            if request.is_cancelled() {
                break Pause::Cancelled(right(kernel), reason_to_skip(around, activation));
            }
            // Should the kernel panic, its right is found by this.
            *running = kernel;
            // SAFETY: the record and the entrances are of the same function.
            status = unsafe { entrances.enter(activation, around) };
        } else if let Some(taken) = next_task::<TASKS>(first, frame) {
            let register;
            (kernel, register) = taken.target();
            // SAFETY: the kernel was put off to this task. What takes its right up is that which the
            // kernel has when it returns, as above.
            unsafe { registers.registers().take_up(kernel, register) };
            *running = kernel;
            let value = taken.run(request);
            status = Status::of_result(&value);
            // SAFETY: as above; it is the kernel's only result.
            record = unsafe { registers.put_late(kernel, register, value, &mut walk) };
            around.scratch.n_put = 1;
        } else {
            break Pause::Empty;
        }
        *running = Stacked::NONE;
        if TASKS && status.is_later() {
            let task = frame.put_off(right(kernel), around.scratch);
            request.queue().add_local_task(task);
            if registers.registers().is_shared() {
                break Pause::Shared;
            }
            continue;
        }
        // Without tasks nobody shares the call.
        let is_shared = match TASKS {
            true => registers.registers().is_shared(),
            false => false,
        };
        if status != Status::PLAIN || is_shared {
            let mut running = right(kernel);
            if status.is_call() {
                let (registers, first) = (registers.registers(), around.scratch.n_taken);
                // SAFETY: the status says so, and nobody else has the kernel's right.
                unsafe { registers.leave_operands(&mut running.started, first) };
            } else if status == Status::PLAIN {
                around.scratch.n_put = record.record().n_results();
            }
            break Pause::Unsettled(running, status);
        }
        // SAFETY: the kernel was started above, or was put off, and its results are put.
        unsafe { registers.finish_plain(record, stack) };
    }
}

#[inline(always)]
fn next_task<const TASKS: bool>(
    first: &mut Option<ClaimedTask>,
    frame: &Arc<Frame>,
) -> Option<ClaimedTask> {
    match TASKS {
        true => first.take().or_else(|| ClaimedTask::next(frame)),
        false => None,
    }
}

/// Lists a kernel that became ready.
#[inline(always)]
fn push(registers: &Registers, queue: &mut ReadyQueue<Ready>, streams: Streams, ready: Ready) {
    let shape = registers.shape();
    match streams {
        Streams::One => queue.push_here(ready),
        Streams::OnThreads if shape.only_begins(ready.kernel()) => queue.push_here(ready),
        Streams::Several | Streams::OnThreads => queue.push(shape.stream(ready.kernel()), ready),
    }
}

/// Gives tasks of kernels that were put off to the queue, all at once.
#[cold]
fn queue_all(frame: &Frame, begun: &mut Begun) {
    let mut tasks = begun.drain(..).map(LocalTask::into_shared);
    frame.request.queue().add_tasks(&mut tasks);
}
