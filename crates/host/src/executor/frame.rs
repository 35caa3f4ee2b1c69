//! One call of a function: a slot per register, a word per kernel, and the rights to touch them.
//!
//! # Who may touch what
//!
//! | Right | Obtained from | Allows |
//! | --- | --- | --- |
//! | [`Ready`] | a wait count that reached zero | starting one kernel, once |
//! | [`Running`] | [`Frame::start`] | taking each operand of the kernel, once, in order |
//! | [`Fill`] | [`Running::finish`], [`Frame::claim`], the arguments | filling one register, once |
//!
//! None of them can be copied, so the executor above is safe Rust.
//!
//! # Confined and shared
//!
//! A frame starts *confined* to the thread that made it: it is an `Arc` that is not `Send`, and its
//! counters are plain loads and stores. Before anything that lets another thread in (a task, a
//! continuation), [`Frame::share`] turns it into a [`SharedFrame`], which is `Send`; from then on
//! counters are read-modify-writes. A frame never goes back.
//!
//! # Invariants
//!
//! * I1. A register is filled before any of its late users is counted down; early users are
//!   counted down once it holds a handle.
//! * I2. A slot is written once, with one reference for each use and, unless a forwarding value
//!   stands for the register, each return. Each reader copies the slot bit by bit and so takes its
//!   own reference. Nothing writes it again.
//! * I3. A kernel's word counts down what it waits for, and becomes `STARTED` when its `Ready` is
//!   used and `FINISHED` when its results are filled or awaited.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use tfrt_async::{AnyAsyncValue, AnyPromise, Error};

use super::topology::{Definition, KernelNode, Topology};
use crate::program::ProgramRef;
use crate::request::{ExecutionContext, RequestContext};

/// A kernel's word once the kernel has been started.
const STARTED: u32 = u32::MAX;
/// A kernel's word once its results are filled, or awaited.
const FINISHED: u32 = u32::MAX - 1;

/// The right to start one kernel of one frame.
#[derive(Debug)]
pub(crate) struct Ready {
    kernel: u32,
    /// The address of the frame, since a right of one frame is none of another.
    frame: usize,
}

impl Ready {
    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }
}

/// The right to fill one register of one frame.
#[derive(Debug)]
pub(crate) struct Fill {
    register: u32,
    frame: usize,
}

/// A value that stands for a register before the register is filled: its holders are outside of
/// the frame, or are marked kernels.
struct Forward {
    register: u32,
    handle: AnyAsyncValue,
    /// Taken by whoever fills the register.
    promise: UnsafeCell<Option<AnyPromise>>,
}

/// One call of a function.
pub(crate) struct Frame {
    program: ProgramRef,
    function: u32,
    request: Arc<RequestContext>,
    depth: u32,
    // Invariant: false only while a single thread can reach the frame; see the module's header.
    shared: AtomicBool,
    // Invariant: changed only while the frame is confined.
    forwards: UnsafeCell<Vec<Forward>>,
    /// Whether the kernels were let loose; happens once.
    entered: AtomicBool,
    /// Whether the caller took the results that stand in slots.
    results_taken: AtomicBool,
    memory: Memory,
}

/// The slots; two bits for each register: its value is awaited, and its slot holds returns; and the
/// words of the kernels.
struct Memory {
    block: NonNull<u8>,
    layout: Layout,
    n_registers: usize,
    n_kernels: usize,
}

type Slot = UnsafeCell<MaybeUninit<AnyAsyncValue>>;

impl Memory {
    fn layout(n_registers: usize, n_kernels: usize) -> Option<Layout> {
        let slots = Layout::array::<Slot>(n_registers).ok()?;
        let awaited = Layout::array::<AtomicU64>(2 * n_registers.div_ceil(64)).ok()?;
        let words = Layout::array::<AtomicU32>(n_kernels).ok()?;
        let (layout, _) = slots.extend(awaited).ok()?;
        let (layout, _) = layout.extend(words).ok()?;
        Some(layout.pad_to_align())
    }

    fn slot(&self, register: u32) -> &Slot {
        let register = register as usize;
        assert!(
            register < self.n_registers,
            "the topology has this register"
        );
        // SAFETY: the block begins with an array of `n_registers` slots, and `register` is below.
        let slot = unsafe { self.block.cast::<Slot>().add(register) };
        // SAFETY: `Frame::new` made the slots, which hold any bytes, and they live as long as
        // `self`; what is in them is only reached through the cell.
        unsafe { slot.as_ref() }
    }

    fn awaited(&self) -> &[AtomicU64] {
        &self.bits()[..self.n_registers.div_ceil(64)]
    }

    fn returning(&self) -> &[AtomicU64] {
        &self.bits()[self.n_registers.div_ceil(64)..]
    }

    fn bits(&self) -> &[AtomicU64] {
        let n = 2 * self.n_registers.div_ceil(64);
        // The slots before it are a multiple of 8 bytes long, so nothing is padded.
        // SAFETY: `Memory::layout` puts the bits right after the slots, inside the block.
        let start = unsafe { self.block.cast::<Slot>().add(self.n_registers) };
        // SAFETY: `n` words are there, zeroed in `Frame::new`, and live as long as `self`.
        unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>().as_ptr(), n) }
    }

    fn words(&self) -> &[AtomicU32] {
        let n_bits = 2 * self.n_registers.div_ceil(64);
        // SAFETY: as in `bits`.
        let start = unsafe { self.block.cast::<Slot>().add(self.n_registers) };
        // SAFETY: the words come right after the bits: an array of 8-byte words needs no padding
        // before one of 4-byte words.
        let start = unsafe { start.cast::<AtomicU64>().add(n_bits) };
        // SAFETY: `n_kernels` words are there, written in `Frame::new`, and live as long as `self`.
        unsafe { std::slice::from_raw_parts(start.cast::<AtomicU32>().as_ptr(), self.n_kernels) }
    }
}

const _: () = assert!(size_of::<Slot>().is_multiple_of(8) && align_of::<Slot>() == 8);

impl Frame {
    /// Makes the frame for one call, its registers empty.
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
        let topology = program.topology(function);
        let (n_registers, n_kernels) = (topology.n_registers(), topology.n_kernels());
        let exhausted = |bytes: usize| {
            Error::resource_exhausted(format!(
                "no memory for a call of '{}': {bytes} bytes were refused",
                program.function_name(function)
            ))
        };
        let layout = Memory::layout(n_registers, n_kernels).ok_or_else(|| exhausted(usize::MAX))?;
        let block = if layout.size() == 0 {
            NonNull::<Slot>::dangling().cast()
        } else {
            let allocator = request.host().allocator();
            allocator
                .allocate(layout)
                .ok_or_else(|| exhausted(layout.size()))?
        };
        // SAFETY: the block is ours and `layout.size()` bytes long (dangling only for 0 bytes).
        unsafe { block.as_ptr().write_bytes(0, layout.size()) };
        let memory = Memory {
            block,
            layout,
            n_registers,
            n_kernels,
        };
        for (word, wait) in memory.words().iter().zip(topology.initial_waits()) {
            // Ordering: the frame is confined.
            word.store(*wait, Ordering::Relaxed);
        }
        let forwards = topology
            .read_by_marked()
            .iter()
            .map(|register| Forward::new(*register))
            .collect();
        Ok(Arc::new(Frame {
            program,
            function,
            request,
            depth,
            shared: AtomicBool::new(false),
            forwards: UnsafeCell::new(forwards),
            entered: AtomicBool::new(false),
            results_taken: AtomicBool::new(false),
            memory,
        }))
    }

    pub(crate) fn program(&self) -> &ProgramRef {
        &self.program
    }

    pub(crate) fn topology(&self) -> &Topology {
        self.program.topology(self.function)
    }

    pub(crate) fn request(&self) -> &Arc<RequestContext> {
        &self.request
    }

    /// How many calls are around this one.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn is_shared(&self) -> bool {
        // Ordering: a thread that was handed the frame sees the store, which came before the
        // hand-off; the confined thread sees its own.
        self.shared.load(Ordering::Relaxed)
    }

    /// Lets other threads in: makes the frame shared, and gives each returned register that is not
    /// yet filled the value that its callers will hold.
    pub(crate) fn share(self: &Arc<Self>) -> SharedFrame {
        if !self.is_shared() {
            self.forward_unfilled_results();
            // Ordering: what hands the frame over releases; see `is_shared`. The list of live
            // frames hands it over too, under its lock.
            self.shared.store(true, Ordering::Relaxed);
            self.request.host().live_frames().add(self);
        }
        SharedFrame(self.clone())
    }

    fn forward_unfilled_results(&self) {
        for register in self.topology().returned() {
            if !self.holds_returns(*register) && self.forward(*register).is_none() {
                // SAFETY: the frame is confined to this thread, and no reference into the list
                // is held across this line.
                let forwards = unsafe { &mut *self.forwards.get() };
                forwards.push(Forward::new(*register));
            }
        }
    }

    fn forward(&self, register: u32) -> Option<&Forward> {
        // SAFETY: the list changes only while the frame is confined, in
        // `forward_unfilled_results`, which holds no reference across its change.
        let forwards = unsafe { &*self.forwards.get() };
        forwards.iter().find(|forward| forward.register == register)
    }

    /// Tells whether a slot holds the references for a register's returns: it was filled while the
    /// frame was confined. Asked by the thread that started the frame, or when it is dropped.
    fn holds_returns(&self, register: u32) -> bool {
        let (word, bit) = bit(register);
        // Ordering: written only while the frame was confined to this thread.
        self.memory.returning()[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Tells whether a register is filled, when the frame is dropped.
    fn is_filled(&self, register: u32) -> bool {
        let finished = match self.topology().register(register).producer {
            // Ordering: no one else can reach the frame.
            Some((kernel, _)) => {
                self.memory.words()[kernel as usize].load(Ordering::Relaxed) == FINISHED
            }
            None => true,
        };
        finished && !self.is_awaited(register)
    }

    fn is_awaited(&self, register: u32) -> bool {
        let (word, bit) = bit(register);
        // Ordering: a hint, or the frame is confined.
        self.memory.awaited()[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Leaves a register to be filled by whoever claims it.
    pub(crate) fn leave(&self, fill: Fill) {
        let (word, bit) = bit(fill.register);
        // Ordering: publishes nothing; the claim that clears it comes through a continuation.
        self.memory.awaited()[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Takes the right to fill an awaited register, if nobody took it before.
    pub(crate) fn claim(&self, register: u32) -> Option<Fill> {
        let (word, bit) = bit(register);
        // Ordering: pairs with another claim of the same register; what the winner writes is
        // released by the counts.
        let before = self.memory.awaited()[word].fetch_and(!bit, Ordering::AcqRel);
        (before & bit != 0).then(|| Fill {
            register,
            frame: self.address(),
        })
    }

    /// The registers that are awaited at this moment.
    pub(crate) fn awaited_registers(&self) -> Vec<u32> {
        let n_registers = self.topology().n_registers() as u32;
        (0..n_registers)
            .filter(|register| self.is_awaited(*register))
            .collect()
    }

    /// Counts down one user of a filled register.
    #[inline]
    pub(crate) fn count_down(&self, kernel: u32) -> Option<Ready> {
        let word = &self.memory.words()[kernel as usize];
        let ready = || {
            Some(Ready {
                kernel,
                frame: self.address(),
            })
        };
        if self.topology().kernel(kernel).marked {
            // Ordering: the winner may read what any one publisher wrote before its count.
            return word
                .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
                .then(ready)
                .flatten();
        }
        if !self.is_shared() {
            // Ordering: the frame is confined.
            let waits = word.load(Ordering::Relaxed) - 1;
            word.store(waits, Ordering::Relaxed);
            return if waits == 0 { ready() } else { None };
        }
        // Ordering: releases the filled register to whoever takes the count to zero, and acquires
        // what the other users' publishers released.
        if word.fetch_sub(1, Ordering::AcqRel) == 1 {
            ready()
        } else {
            None
        }
    }

    /// Begins a call of a synchronous function: the rights to start its kernels, in order, and to
    /// fill each argument; given once.
    pub(crate) fn begin_in_order(&self) -> (impl Iterator<Item = Ready> + use<>, Vec<Fill>) {
        let topology = self.topology();
        assert!(
            topology.kind() == tfrt_bef::FunctionKind::Sync,
            "only these run in order"
        );
        self.enter();
        let n_kernels = topology.n_kernels() as u32;
        let frame = self.address();
        let fills = topology.arguments().iter().map(|definition| Fill {
            register: definition.register,
            frame,
        });
        (
            (0..n_kernels).map(move |kernel| Ready { kernel, frame }),
            fills.collect(),
        )
    }

    /// Lets the kernels loose, once.
    fn enter(&self) {
        // Ordering: one thread comes here first, and nobody waits for another.
        let entered = self.entered.swap(true, Ordering::Relaxed);
        assert!(!entered, "a frame is run once");
    }

    /// Begins the call: the rights to start the kernels without operands, and to fill each
    /// argument; given once.
    pub(crate) fn begin(&self) -> (Vec<Ready>, Vec<(Definition, Fill)>) {
        self.enter();
        let frame = self.address();
        let topology = self.topology();
        // Each of these waits for one thing, which is this.
        let ready = topology.entry_users().iter().map(|kernel| Ready {
            kernel: *kernel,
            frame,
        });
        let fills = topology.arguments().iter().map(|definition| {
            (
                *definition,
                Fill {
                    register: definition.register,
                    frame,
                },
            )
        });
        (ready.collect(), fills.collect())
    }

    /// Starts a kernel.
    #[inline]
    pub(crate) fn start(self: &Arc<Self>, ready: Ready) -> Running<'_> {
        assert!(
            ready.frame == self.address(),
            "a right of one frame is none of another"
        );
        // Ordering: `Ready` is the only right to this word now; drop of the frame reads it later.
        self.memory.words()[ready.kernel as usize].store(STARTED, Ordering::Relaxed);
        Running {
            frame: self,
            kernel: ready.kernel,
            n_taken: 0,
            n_filled: 0,
        }
    }

    /// Fills a register, and tells those outside who hold a value for it.
    ///
    /// `value` may be a handle; then it is the caller's to count down late users only when the
    /// handle has settled.
    pub(crate) fn fill(&self, fill: Fill, value: AnyAsyncValue) {
        assert!(
            fill.frame == self.address(),
            "a right of one frame is none of another"
        );
        let node = self.topology().register(fill.register);
        let promise = self.forward(fill.register).and_then(|forward| {
            // SAFETY: `Fill` is the only right to fill this register, and only filling it takes
            // the promise.
            let promise = unsafe { &mut *forward.promise.get() };
            promise.take()
        });
        let in_slot = match promise {
            Some(_) => node.uses,
            None => node.uses + node.returns,
        };
        if promise.is_none() && node.returns > 0 {
            let (word, bit) = bit(fill.register);
            // Ordering: without a promise the frame is confined.
            self.memory.returning()[word].fetch_or(bit, Ordering::Relaxed);
        }
        if in_slot > 0 {
            value.retain(in_slot as usize - usize::from(promise.is_none()));
            // A `clone` that does not count: the references are those retained above.
            // SAFETY: the copy stands for references just retained: `in_slot` of them, one of
            // which is `value` itself where it is not forwarded; that one is forgotten below.
            let copy = unsafe { std::ptr::read(&raw const value) };
            let slot = self.memory.slot(fill.register);
            // SAFETY: `Fill` is the only right to write this slot, and no one reads it before a
            // count that follows (I1), nor while the frame is dropped.
            let slot = unsafe { &mut *slot.get() };
            slot.write(copy);
        }
        match promise {
            Some(promise) => promise.forward(value),
            None if in_slot > 0 => std::mem::forget(value),
            None => drop(value),
        }
    }

    /// Copies a filled slot, taking over one of its references.
    ///
    /// # Safety
    ///
    /// The register is filled, that happened before this call, and the caller owns one of the uses
    /// or returns that the slot holds references for, and has not taken it yet.
    unsafe fn take_slot(&self, register: u32) -> AnyAsyncValue {
        let slot = self.memory.slot(register);
        // SAFETY: the slot was written before (caller's duty) and is never written again (I2).
        let slot = unsafe { &*slot.get() };
        // SAFETY: it is initialised, and the copy stands for the reference that the caller owns.
        unsafe { slot.assume_init_read() }
    }

    /// Gives the results to the caller, once: values, or handles for what is to come.
    ///
    /// Called by the thread that started the frame, when everything that it could run has run.
    pub(crate) fn take_results(&self) -> Vec<AnyAsyncValue> {
        // Ordering: only the thread that started the frame comes here.
        let taken = self.results_taken.swap(true, Ordering::Relaxed);
        assert!(!taken, "the results of a frame are taken once");
        let topology = self.topology();
        let mut results = Vec::with_capacity(topology.result_registers().len());
        for register in topology.result_registers() {
            results.push(self.take_result(*register));
        }
        results
    }

    fn take_result(&self, register: u32) -> AnyAsyncValue {
        if let Some(forward) = self.forward(register) {
            return forward.handle.clone().settled();
        }
        // Without a forwarding value the register was filled before the frame was shared, by this
        // thread; or the frame is confined, and then everything in it has run.
        if !self.holds_returns(register) {
            return AnyAsyncValue::from_error(Error::internal(
                "a result was neither computed nor awaited",
            ));
        }
        // SAFETY: it is filled, by this thread, and the use is one of the returns, each of which
        // stands in the list of result registers once.
        unsafe { self.take_slot(register) }
    }

    /// Where a kernel stands.
    pub(crate) fn context_of(self: &Arc<Self>, kernel: u32) -> ExecutionContext {
        let node = self.topology().kernel(kernel);
        ExecutionContext::for_kernel(self, node.location, node.name().clone())
    }
}

fn bit(register: u32) -> (usize, u64) {
    ((register / 64) as usize, 1 << (register % 64))
}

impl Forward {
    fn new(register: u32) -> Self {
        let (promise, handle) = AnyAsyncValue::pending();
        Forward {
            register,
            handle,
            promise: UnsafeCell::new(Some(promise)),
        }
    }
}

impl Drop for Frame {
    /// Releases what kernels that never ran would have taken: a queue may drop tasks.
    fn drop(&mut self) {
        let topology = self.program.topology(self.function);
        let words = self.memory.words();
        for (kernel, word) in words.iter().enumerate() {
            // Ordering: `&mut self`.
            let word = word.load(Ordering::Relaxed);
            let node = topology.kernel(kernel as u32);
            if word == STARTED || word == FINISHED || node.marked {
                continue;
            }
            for register in topology.operands(node) {
                if self.is_filled(*register) {
                    // SAFETY: filled, and this kernel's use of it was never taken: only `Running`
                    // takes uses, and the kernel was never started.
                    drop(unsafe { self.take_slot(*register) });
                }
            }
        }
        if !*self.results_taken.get_mut() {
            for register in topology.result_registers() {
                if self.holds_returns(*register) {
                    // SAFETY: filled, and its returns were never taken.
                    drop(unsafe { self.take_slot(*register) });
                }
            }
        }
        if self.is_shared() {
            self.request.host().live_frames().remove(self);
        }
        if self.memory.layout.size() > 0 {
            // SAFETY: allocated in `Frame::new` from the same allocator with the same layout, and
            // nothing refers to it any more.
            unsafe {
                self.request
                    .host()
                    .allocator()
                    .deallocate(self.memory.block, self.memory.layout);
            }
        }
    }
}

/// A frame that other threads may reach.
#[derive(Clone)]
pub(crate) struct SharedFrame(Arc<Frame>);

// SAFETY: a shared frame's counters and bits are atomic read-modify-writes; its slots and promises
// are touched only by holders of `Ready`, `Running` and `Fill`, which exist once each and whose
// counts order the accesses (I1, I2); its list of forwarding values no longer changes.
unsafe impl Send for SharedFrame {}
// SAFETY: as for `Send`: every access goes through those rights.
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

// SAFETY: it gives out shared frames only; see `SharedFrame`. (A frame is listed by `share`.)
unsafe impl Send for WeakFrame {}
// SAFETY: as for `Send`.
unsafe impl Sync for WeakFrame {}

impl WeakFrame {
    /// Remembers a frame that is about to be shared.
    pub(crate) fn new(frame: &Arc<Frame>) -> Self {
        WeakFrame(Arc::downgrade(frame))
    }

    /// The frame, if it still lives and is shared by now.
    pub(crate) fn upgrade(&self) -> Option<SharedFrame> {
        self.0.upgrade().map(SharedFrame)
    }
}

/// The right to a started kernel's operands and results.
pub(crate) struct Running<'f> {
    frame: &'f Arc<Frame>,
    kernel: u32,
    n_taken: u32,
    n_filled: u32,
}

impl<'f> Running<'f> {
    pub(crate) fn frame(&self) -> &'f Arc<Frame> {
        self.frame
    }

    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }

    pub(crate) fn node(&self) -> Node<'f> {
        let topology = self.frame.topology();
        Node {
            topology,
            node: topology.kernel(self.kernel),
        }
    }

    pub(crate) fn execution_context(&self) -> ExecutionContext {
        self.frame.context_of(self.kernel)
    }

    pub(crate) fn next_operand(&self) -> usize {
        self.n_taken as usize
    }

    pub(crate) fn n_operands_left(&self) -> usize {
        (self.node().node.n_declared - self.n_taken.min(self.node().node.n_declared)) as usize
    }

    /// Takes the next operand that the kernel declares.
    #[inline]
    pub(crate) fn take_operand(&mut self) -> Option<AnyAsyncValue> {
        let node = self.frame.topology().kernel(self.kernel);
        if self.n_taken >= node.n_declared {
            None
        } else {
            self.take_next()
        }
    }

    #[inline]
    fn take_next(&mut self) -> Option<AnyAsyncValue> {
        let topology = self.frame.topology();
        let node = topology.kernel(self.kernel);
        let register = *topology.operands(node).get(self.n_taken as usize)?;
        self.n_taken += 1;
        if node.marked {
            let forward = self.frame.forward(register);
            return Some(
                forward
                    .expect("made with the frame")
                    .handle
                    .clone()
                    .settled(),
            );
        }
        // SAFETY: this kernel was counted down to zero, or runs in order, so its operands are
        // filled (I1); `n_taken` makes it take each of its uses once.
        Some(unsafe { self.frame.take_slot(register) })
    }

    /// Looks at the operands without taking them; nothing may have been taken yet.
    pub(crate) fn operands(&self) -> impl DoubleEndedIterator<Item = &AnyAsyncValue> {
        assert!(
            self.n_taken == 0,
            "operands are looked at before they are taken"
        );
        let topology = self.frame.topology();
        let node = topology.kernel(self.kernel);
        topology.operands(node).iter().map(move |register| {
            if node.marked {
                return &self
                    .frame
                    .forward(*register)
                    .expect("made with the frame")
                    .handle;
            }
            let slot = self.frame.memory.slot(*register);
            // SAFETY: the slot is filled (as in `take_next`) and never written again (I2).
            let slot = unsafe { &*slot.get() };
            // SAFETY: filled; this kernel's own reference keeps the value alive while `self` is
            // borrowed, since it has not been taken.
            unsafe { slot.assume_init_ref() }
        })
    }

    /// Drops the operands that the kernel left.
    pub(crate) fn release_operands(&mut self) {
        while self.take_next().is_some() {}
    }

    /// The next result to fill, in order.
    pub(crate) fn next_result(&mut self) -> Option<(Definition, Fill)> {
        let topology = self.frame.topology();
        let node = topology.kernel(self.kernel);
        let definition = *topology.results(node).get(self.n_filled as usize)?;
        self.n_filled += 1;
        Some((
            definition,
            Fill {
                register: definition.register,
                frame: self.frame.address(),
            },
        ))
    }

    /// All results are filled or awaited.
    pub(crate) fn finish(self) {
        // Ordering: read by the drop of the frame, or by this thread in `is_filled`.
        self.frame.memory.words()[self.kernel as usize].store(FINISHED, Ordering::Relaxed);
    }

    /// Keeps the right for later, on whatever thread.
    pub(crate) fn suspend(self) -> Suspended {
        let suspended = Suspended {
            frame: self.frame.clone(),
            kernel: self.kernel,
            n_taken: self.n_taken,
        };
        std::mem::forget(self);
        suspended
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.release_operands();
    }
}

/// A [`Running`] that owns its frame.
pub(crate) struct Suspended {
    frame: Arc<Frame>,
    kernel: u32,
    n_taken: u32,
}

impl Suspended {
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }

    /// Takes the right up again.
    pub(crate) fn resume(&mut self) -> Running<'_> {
        let n_taken = std::mem::replace(&mut self.n_taken, u32::MAX);
        assert!(n_taken != u32::MAX, "a suspended kernel is resumed once");
        Running {
            frame: &self.frame,
            kernel: self.kernel,
            n_taken,
            n_filled: 0,
        }
    }
}

/// A kernel of a topology.
pub(crate) struct Node<'f> {
    topology: &'f Topology,
    node: &'f KernelNode,
}

impl<'f> Node<'f> {
    pub(crate) fn attributes(&self) -> &'f [u32] {
        self.topology.attributes(self.node)
    }

    pub(crate) fn functions(&self) -> &'f [u32] {
        self.topology.functions(self.node)
    }

    pub(crate) fn n_results(&self) -> usize {
        self.topology.results(self.node).len()
    }

    pub(crate) fn name(&self) -> &'f Arc<str> {
        self.node.name()
    }

    pub(crate) fn node(&self) -> &'f KernelNode {
        self.node
    }
}
