//! One call of a function: its registers, its program and its request.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tfrt_async::{AnyAsyncValue, AnyPromise, Error};

use super::ready::{Group, ReadyQueue};
use super::reason_to_skip;
use super::registers::{Arguments, Fill, Filled, Ready, Registers, Started};
use super::shape::Shape;
use super::topology::Topology;
use crate::kernel::{Scratch, Status, Surroundings};
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
    /// What handles that stand in registers wait for.
    promises: Mutex<Vec<(u32, AnyPromise)>>,
}

/// The right to settle a register that was left.
pub(crate) enum Claim {
    /// It is empty.
    Fill(Right),
    /// It holds a handle that this promise settles.
    Promise(AnyPromise),
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
    ) -> Result<Arc<Frame>, Error> {
        let shape = program.topology(function).shape().clone();
        let size_bytes = Registers::size_bytes(&shape);
        let Some(registers) = Registers::new(shape, request.host().allocator()) else {
            return Err(program.no_memory(function, size_bytes));
        };
        Ok(Arc::new(Frame {
            registers,
            number: next_call_number(),
            program,
            function,
            request,
            depth,
            promises: Mutex::default(),
        }))
    }

    pub(crate) fn program(&self) -> &ProgramRef {
        &self.program
    }

    #[inline]
    pub(crate) fn topology(&self) -> &Topology {
        self.program.topology(self.function)
    }

    #[inline]
    pub(crate) fn shape(&self) -> &Shape {
        self.registers.shape()
    }

    pub(crate) fn request(&self) -> &Arc<RequestContext> {
        &self.request
    }

    /// How many calls are around this one.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Lets other threads in.
    pub(crate) fn share(self: &Arc<Self>) -> SharedFrame {
        if self.registers.share() {
            self.request.host().live_frames().add(self);
        }
        SharedFrame(self.clone())
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
        let results = self.registers.take_results();
        results
            .map(|result| result.unwrap_or_else(missing))
            .collect()
    }

    /// Where a kernel stands.
    pub(crate) fn context_of(&self, kernel: u32) -> ExecutionContext {
        let (location, name) = self.topology().place(kernel);
        ExecutionContext::for_kernel(&self.program, &self.request, location, name.clone())
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if self.registers.is_shared() {
            self.request.host().live_frames().remove(self);
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
        assert!(
            frame.registers.is_shared() || cfg!(tfrt_planted),
            "only shared frames are listed"
        );
        WeakFrame(Arc::downgrade(frame))
    }

    /// The frame, if it still lives.
    pub(crate) fn upgrade(&self) -> Option<SharedFrame> {
        self.0.upgrade().map(SharedFrame)
    }
}

/// Numbers calls: none is given twice.
fn next_call_number() -> u64 {
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

/// The ready kernels of one call on one thread.
pub(crate) struct ReadyList {
    frame: Arc<Frame>,
    // Invariant: rights of the frame's registers.
    queue: ReadyQueue<Ready>,
}

/// Ready kernels of one stream, to be run by a task.
pub(crate) struct ReadyGroup {
    frame: SharedFrame,
    // Invariant: rights of the frame's registers.
    group: Group<Ready>,
}

impl ReadyGroup {
    pub(crate) fn frame(&self) -> &SharedFrame {
        &self.frame
    }

    /// A list that begins with these kernels.
    pub(crate) fn into_list(self) -> ReadyList {
        ReadyList {
            frame: self.frame.into_local(),
            queue: ReadyQueue::of_group(self.group),
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
}

impl ReadyList {
    /// An empty list, on a thread that runs `stream`.
    pub(crate) fn new(frame: Arc<Frame>, stream: u32) -> Self {
        ReadyList {
            frame,
            queue: ReadyQueue::new(stream),
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
        let (registers, queue) = (&self.frame.registers, &mut self.queue);
        registers.begin(|ready| push(registers, queue, ready))
    }

    /// The right to fill the next argument of a call that this list has begun.
    pub(crate) fn next_argument(&self, arguments: &mut Arguments) -> Option<Right> {
        let fill = self.frame.registers.next_argument(arguments)?;
        let call = self.frame.number;
        Some(Right { call, fill })
    }

    /// Between two kernels: hands over what belongs elsewhere, and moves to another stream if there
    /// is nothing left here.
    pub(crate) fn turn(&mut self, mut hand_over: impl FnMut(ReadyGroup)) {
        for group in self.queue.turn() {
            let frame = self.frame.share();
            hand_over(ReadyGroup { frame, group });
        }
    }

    /// Runs ready kernels, the last to become ready first, until there is something to attend to.
    ///
    /// # Panics
    ///
    /// If a kernel does. Its operands are released then; the right to its results is in `started`.
    pub(crate) fn run<const WATCHED: bool>(
        &mut self,
        scratch: &mut Scratch,
        started: &mut Option<Running>,
    ) -> Pause {
        let frame = &self.frame;
        let registers = &frame.registers;
        let mut around = Surroundings {
            program: &frame.program,
            request: &frame.request,
            topology: frame.topology(),
            kernel: 0,
            is_marked: false,
            scratch,
        };
        let request: &RequestContext = &frame.request;
        let entries = around.topology.entries();
        let call = frame.number;
        loop {
            if self.queue.has_others() {
                return Pause::Elsewhere;
            }
            let Some(ready) = self.queue.pop() else {
                return Pause::Empty;
            };
            let kernel = ready.kernel();
            around.kernel = kernel;
            // SAFETY: the list's rights are those of its frame.
            let (right, activation) = unsafe { registers.start(ready) };
            let running = Running {
                call,
                started: right,
            };
            let entry = &entries[registers.shape().record(kernel).code() as usize];
            let _scope = if WATCHED {
                request.watch(&entry.name)
            } else {
                None
            };
            let Some(activation) = activation else {
                return match request.cancellation() {
                    Some(reason) => Pause::Cancelled(running, reason.clone()),
                    None => Pause::Marked(running),
                };
            };
            if request.is_cancelled() {
                return Pause::Cancelled(running, reason_to_skip(&around, activation));
            }
            *started = Some(running);
            let status = entry.kernel.call(activation, &mut around);
            let running = started.take().expect("put there before");
            if status != Status::PLAIN {
                return Pause::Unsettled(running, status);
            }
            let queue = &mut self.queue;
            // SAFETY: the right was made from this list's.
            unsafe {
                registers.finish_plain(running.started, |ready| push(registers, queue, ready));
            }
        }
    }

    fn check(&self, call: u64) {
        assert!(
            call == self.frame.number,
            "a right of one call is none of another"
        );
    }

    /// The operands of a marked kernel that was started.
    pub(crate) fn handles(&self, running: &Running) -> Vec<AnyAsyncValue> {
        self.check(running.call);
        self.frame.registers.handles(&running.started)
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
        let (registers, queue) = (&self.frame.registers, &mut self.queue);
        // SAFETY: a right of these registers.
        unsafe {
            registers.count_early(&mut right.filled, |ready| push(registers, queue, ready));
        }
    }

    /// Counts down all users that have not been, and lists those that are ready.
    pub(crate) fn count_all(&mut self, right: FilledRight) {
        self.check(right.call);
        let (registers, queue) = (&self.frame.registers, &mut self.queue);
        // SAFETY: a right of these registers.
        unsafe {
            registers.count_all(right.filled, |ready| push(registers, queue, ready));
        }
    }

    /// Leaves a register to be filled by whoever claims it.
    pub(crate) fn leave(&self, right: Right) {
        self.check(right.call);
        // SAFETY: a right of these registers.
        unsafe { self.frame.registers.leave(right.fill) };
    }
}

#[inline(always)]
fn push(registers: &Registers, queue: &mut ReadyQueue<Ready>, ready: Ready) {
    queue.push(registers.shape().stream(ready.kernel()), ready);
}
