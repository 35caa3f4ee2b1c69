//! One call of a function: its registers, its program and its request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tfrt_async::{AnyAsyncValue, AnyPromise, Error};

use super::registers::{Fill, Filled, InOrder, Ready, Registers, Started};
use super::shape::Shape;
use super::topology::{KernelNode, Topology};
use crate::program::ProgramRef;
use crate::request::{ExecutionContext, RequestContext};

/// One call of a function.
///
/// It is confined to its thread (an `Arc` that is not `Send`) until [`Frame::share`] gives a
/// [`SharedFrame`], which is.
pub(crate) struct Frame {
    registers: Registers,
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
    Fill(Fill),
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
            return Err(Error::resource_exhausted(format!(
                "no memory for a call of '{}': about {size_bytes} bytes were refused",
                program.function_name(function)
            )));
        };
        Ok(Arc::new(Frame {
            registers,
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

    pub(crate) fn shape(&self) -> &Shape {
        self.registers.shape()
    }

    pub(crate) fn request(&self) -> &Arc<RequestContext> {
        &self.request
    }

    /// The register that a right is for.
    pub(crate) fn register_of(&self, fill: &Fill) -> u32 {
        self.registers.register_of(fill)
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

    /// Begins the call: see [`Registers::begin`].
    pub(crate) fn begin(&self) -> (Vec<Ready>, Vec<Fill>) {
        self.registers.begin()
    }

    /// Begins a call of a synchronous function: see [`Registers::begin_in_order`].
    pub(crate) fn begin_in_order(&self) -> (InOrder, Vec<Fill>) {
        self.registers.begin_in_order()
    }

    /// The right to start the next kernel of a synchronous function.
    pub(crate) fn next_in_order(&self, in_order: &mut InOrder) -> Option<Ready> {
        in_order.next(&self.registers)
    }

    /// Counts down users that can do with a handle: see [`Registers::count_early`].
    #[inline]
    pub(crate) fn count_early(&self, filled: &mut Filled, ready: impl FnMut(Ready)) {
        self.registers.count_early(filled, ready);
    }

    /// Counts down all users that have not been.
    #[inline]
    pub(crate) fn count_all(&self, filled: Filled, ready: impl FnMut(Ready)) {
        self.registers.count_all(filled, ready);
    }

    #[inline]
    pub(crate) fn fill(&self, fill: Fill, value: AnyAsyncValue) -> Filled {
        self.registers.fill(fill, value)
    }

    /// Leaves a register to be filled by whoever claims it.
    pub(crate) fn leave(&self, fill: Fill) {
        self.registers.leave(fill);
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
            return Some(Claim::Fill(fill));
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

    #[inline]
    pub(crate) fn start(self: &Arc<Self>, ready: Ready) -> Running<'_> {
        let started = Some(self.registers.start(ready));
        Running {
            frame: self,
            started,
        }
    }

    /// Gives the results to the caller, once: see [`Registers::take_results`].
    pub(crate) fn take_results(&self) -> Vec<AnyAsyncValue> {
        let missing = || {
            let error = Error::internal("a result was neither computed nor awaited");
            AnyAsyncValue::from_error(error)
        };
        self.registers
            .take_results()
            .into_iter()
            .map(|r| r.unwrap_or_else(missing))
            .collect()
    }

    /// Where a kernel stands.
    pub(crate) fn context_of(&self, kernel: u32) -> ExecutionContext {
        let node = self.topology().kernel(kernel);
        ExecutionContext::for_kernel(self, node.location, node.name().clone())
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

/// The right to a started kernel's operands and results.
pub(crate) struct Running<'f> {
    frame: &'f Arc<Frame>,
    // Invariant: `None` only once `finish` or `suspend` has taken it.
    started: Option<Started>,
}

impl<'f> Running<'f> {
    fn started(&self) -> &Started {
        self.started.as_ref().expect("taken only by value")
    }

    fn started_mut(&mut self) -> &mut Started {
        self.started.as_mut().expect("taken only by value")
    }

    pub(crate) fn frame(&self) -> &'f Arc<Frame> {
        self.frame
    }

    pub(crate) fn kernel(&self) -> u32 {
        self.started().kernel()
    }

    #[inline]
    pub(crate) fn node(&self) -> &'f KernelNode {
        self.frame.topology().kernel(self.kernel())
    }

    pub(crate) fn n_results(&self) -> usize {
        self.frame.shape().n_results_of(self.kernel())
    }

    pub(crate) fn execution_context(&self) -> ExecutionContext {
        self.frame.context_of(self.kernel())
    }

    pub(crate) fn next_operand(&self) -> usize {
        self.started().n_taken() as usize
    }

    #[inline]
    pub(crate) fn n_operands_left(&self) -> usize {
        self.node()
            .n_declared
            .saturating_sub(self.started().n_taken()) as usize
    }

    /// Takes the next operand that the kernel declares.
    #[inline]
    pub(crate) fn take_operand(&mut self) -> Option<AnyAsyncValue> {
        if self.n_operands_left() == 0 {
            None
        } else {
            self.take_next()
        }
    }

    #[inline]
    fn take_next(&mut self) -> Option<AnyAsyncValue> {
        let frame = self.frame;
        frame.registers.take_next(self.started_mut())
    }

    /// Tells whether all operands are values, before any is taken.
    #[inline]
    pub(crate) fn all_plain(&self) -> bool {
        self.frame.registers.all_plain(self.started())
    }

    /// Looks at the operands, in order, before any is taken, until `look` is content.
    #[inline]
    pub(crate) fn any_operand(&self, look: impl FnMut(usize, &AnyAsyncValue) -> bool) -> bool {
        self.frame.registers.any_operand(self.started(), look)
    }

    /// Drops the operands that the kernel left.
    pub(crate) fn release_operands(&mut self) {
        while self.take_next().is_some() {}
    }

    /// The right to fill the next result, in order.
    pub(crate) fn next_result(&mut self) -> Option<Fill> {
        let frame = self.frame;
        frame.registers.next_result(self.started_mut())
    }

    /// All results are filled or left.
    pub(crate) fn finish(mut self) {
        self.release_operands();
        let started = self.started.take().expect("taken only by value");
        self.frame.registers.finish(started);
    }

    /// Keeps the right for later, on whatever thread. All operands are released.
    pub(crate) fn suspend(mut self) -> Suspended {
        self.release_operands();
        Suspended {
            frame: self.frame.clone(),
            started: self.started.take(),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.started.is_some() {
            self.release_operands();
        }
    }
}

/// A [`Running`] that owns its frame.
pub(crate) struct Suspended {
    frame: Arc<Frame>,
    started: Option<Started>,
}

impl Suspended {
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    pub(crate) fn kernel(&self) -> u32 {
        self.started.as_ref().expect("resumed only once").kernel()
    }

    /// Takes the right up again, once.
    pub(crate) fn resume(&mut self) -> Running<'_> {
        Running {
            frame: &self.frame,
            started: self.started.take(),
        }
    }
}
