//! The registers of one call and the words of its kernels: who may touch which, and when.
//!
//! This is the only place where kernels' operands and results change hands between threads. It
//! knows nothing of programs and requests; `executor/frame.rs` gives it a [`DataflowPlan`] and an owner,
//! and the models in `executor/models.rs` drive it under loom. That registers and kernels are wired
//! as the code below relies on is the shape's proof.
//!
//! # Rights
//!
//! | Right | Obtained from | Allows |
//! | --- | --- | --- |
//! | [`Ready`] | a wait count that reached zero; the entry | starting one kernel, once |
//! | [`Started`] | [`Registers::start`] | filling each result of the kernel, once, in order |
//! | [`Fill`] | [`Registers::next_result`], [`Registers::claim`], the arguments | filling one register, once |
//! | [`Filled`] | [`Registers::fill`] | counting down the register's users, each once |
//!
//! None of them can be copied or made elsewhere. They do not say which registers they belong to: that
//! they are used with those is the one promise that the unsafe functions below ask for, and that
//! `frame.rs` keeps by tying each right to its call.
//!
//! # Confined and shared
//!
//! Registers start *confined* to the thread that made them, and their counts are plain loads and
//! stores. [`Registers::share`] comes before anything that lets another thread in; from then on
//! counts are read-modify-writes. There is no way back. (`Registers` is not `Sync`: the owner
//! that makes it so promises that order.)
//!
//! # Invariants
//!
//! * I1. A register is filled before a user of it is counted down.
//! * I2. A slot is filled with one reference for each use and, unless a forwarding value stands for
//!   the register, each return. Each reader copies the slot bit by bit and so takes its own
//!   reference. Between the kernel's own `put`, with one reference, and the filling, nobody else
//!   looks at the slot.
//! * I3. A kernel's word counts down what it waits for, may be used by whoever has its [`Ready`] for a
//!   number below the bits that follow, becomes [`STARTED`] when that is used, and carries
//!   [`PENDING`] while its results wait for a call.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_async::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use tfrt_async::{AnyAsyncValue, AnyPromise, HostAllocator};
use tfrt_bef::order::sort_unstable_by;

use super::plan::dataflow::{DataflowPlan, Output};
use super::plan::records::{CountedRecord, Record};
use super::slots::{Activation, Slot, Slots};

mod confined;

pub(crate) use confined::{Confined, ReadyStack};

/// In a kernel's word: any one operand starts it.
pub(super) const MARKED: u32 = 1 << 31;
/// In a kernel's word: it has been started.
const STARTED: u32 = 1 << 30;
/// In a kernel's word: it has returned, but its results are to come from a call.
const PENDING: u32 = 1 << 29;

/// The right to start one kernel.
#[derive(Debug)]
pub(crate) struct Ready {
    kernel: u32,
}

impl Ready {
    #[inline(always)]
    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }
}

/// The right to fill one register.
#[derive(Debug)]
pub(crate) struct Fill {
    register: u32,
}

impl Fill {
    pub(crate) fn register(&self) -> u32 {
        self.register
    }
}

/// The right to count down the users of a register that was filled.
#[derive(Debug)]
#[must_use = "users that are not counted down never run"]
pub(crate) struct Filled {
    register: u32,
    /// Whether those users were counted down that can do with a handle.
    early_done: bool,
}

/// The right to a started kernel's results.
#[derive(Debug)]
pub(crate) struct Started {
    kernel: u32,
    /// From which operand on its run has left them, if it has.
    left: Option<u32>,
    /// How many results the kernel's run has put.
    n_put: u32,
    n_filled: u32,
}

impl Started {
    #[inline(always)]
    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }

    /// The kernel's run, with the activation that came with this right, has put so many results.
    pub(crate) fn has_put(&mut self, n_put: u32) {
        self.n_put = n_put;
    }
}

/// A value that stands for a register before the register is filled: its holders are outside of
/// the call, or are marked kernels.
struct Forward {
    register: u32,
    /// Taken with the results, if nobody else wants one: so that a caller may be the only holder of a result, also while
    /// the call is not over.
    handle: UnsafeCell<Option<AnyAsyncValue>>,
    /// Taken by whoever fills the register.
    promise: UnsafeCell<Option<AnyPromise>>,
}

impl Forward {
    fn new(register: u32) -> Self {
        let (promise, handle) = AnyAsyncValue::pending();
        Forward {
            register,
            handle: UnsafeCell::new(Some(handle)),
            promise: UnsafeCell::new(Some(promise)),
        }
    }
}

/// An array inside the block.
struct Part<T> {
    start: NonNull<T>,
    len: usize,
    _owns: PhantomData<T>,
}

impl<T> Part<T> {
    /// Fills the elements that lie `offset` bytes into `block`.
    ///
    /// # Safety
    ///
    /// As many as `elements` says lie inside one allocation, aligned for `T`, and nobody else uses them.
    unsafe fn init(
        block: NonNull<u8>,
        offset: usize,
        elements: impl ExactSizeIterator<Item = T>,
    ) -> Part<T> {
        let len = elements.len();
        // SAFETY: inside the allocation, by the caller's promise.
        let start = unsafe { block.add(offset) }.cast::<T>();
        // SAFETY: as above; places that are not filled yet may hold anything.
        let places = unsafe { std::slice::from_raw_parts_mut(start.cast().as_ptr(), len) };
        let mut n_filled = 0;
        for (place, element) in places.iter_mut().zip(elements) {
            let place: &mut MaybeUninit<T> = place;
            place.write(element);
            n_filled += 1;
        }
        assert!(n_filled == len, "the iterator knows its length");
        Part {
            start,
            len,
            _owns: PhantomData,
        }
    }

    fn as_slice(&self) -> &[T] {
        // SAFETY: `init` filled `len` elements, which live and stay in place as long as `self`,
        // and only shared references to them are ever made.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Part<AtomicU32> {
    /// Sets all to these values, of which there are as many.
    ///
    /// # Safety
    ///
    /// No other thread uses them meanwhile.
    unsafe fn set(&self, values: &[u32]) {
        assert!(values.len() == self.len, "there are as many");
        #[cfg(not(loom))]
        // SAFETY: so many lie there, which may be written as plain numbers while nobody looks.
        unsafe {
            self.start
                .cast::<u32>()
                .copy_from_nonoverlapping(NonNull::from(values).cast(), self.len)
        };
        #[cfg(loom)]
        for (word, value) in self.as_slice().iter().zip(values) {
            // Ordering: nobody else looks.
            word.store(*value, Ordering::Relaxed);
        }
    }

    /// Tells whether all have a bit.
    ///
    /// # Safety
    ///
    /// No other thread uses them meanwhile.
    unsafe fn all_have(&self, bit: u32) -> bool {
        #[cfg(not(loom))]
        // SAFETY: so many lie there, which may be read as plain numbers while nobody writes.
        let words =
            unsafe { std::slice::from_raw_parts(self.start.cast::<u32>().as_ptr(), self.len) };
        #[cfg(loom)]
        let words = self.as_slice();
        #[cfg(loom)]
        // Ordering: nobody else looks.
        let words = words.iter().map(|word| word.load(Ordering::Relaxed));
        #[cfg(not(loom))]
        let words = words.iter().copied();
        words.fold(bit, |all, word| all & word) == bit
    }
}

/// Where the parts lie in the block: the slots at its start, the others at these offsets.
struct Places {
    layout: Layout,
    awaited: usize,
    returning: usize,
    words: usize,
}

impl Places {
    /// `None` if the block would be larger than can be addressed.
    fn of(shape: &DataflowPlan) -> Option<Places> {
        let bits = Layout::array::<AtomicU64>(shape.n_registers().div_ceil(64)).ok()?;
        let slots = Layout::array::<Slot>(shape.n_registers()).ok()?;
        let (layout, awaited) = slots.extend(bits).ok()?;
        let (layout, returning) = layout.extend(bits).ok()?;
        let kernels = Layout::array::<AtomicU32>(shape.n_kernels()).ok()?;
        let (layout, words) = layout.extend(kernels).ok()?;
        let layout = layout.pad_to_align();
        Some(Places {
            layout,
            awaited,
            returning,
            words,
        })
    }
}

/// The registers of one call, and the words of its kernels.
pub(crate) struct Registers {
    shape: Arc<DataflowPlan>,
    allocator: Arc<dyn HostAllocator>,
    block: NonNull<u8>,
    layout: Layout,
    /// A bit for each register whose value is awaited: whoever clears it may fill it.
    awaited: Part<AtomicU64>,
    /// A bit for each register whose slot holds references for its returns.
    returning: Part<AtomicU64>,
    /// A word for each kernel (I3). Until the call is begun they stand as [`DataflowPlan::begun`] says, if it does.
    words: Part<AtomicU32>,
    // Invariant: false only while a single thread can reach this.
    shared: AtomicBool,
    // Invariant: changed only while confined; ordered by register, each once.
    forwards: UnsafeCell<Vec<Forward>>,
    entered: AtomicBool,
    results_taken: AtomicBool,
    /// A thread has left in the middle of filling: what the slots hold is not known, and leaks.
    given_up: AtomicBool,
}

impl Registers {
    /// Makes the registers of a new call, all of them empty; `None` if the allocator refuses.
    pub(crate) fn new(
        shape: Arc<DataflowPlan>,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Option<Self> {
        let n_bits = shape.n_registers().div_ceil(64);
        let Places {
            layout,
            awaited,
            returning,
            words,
        } = Places::of(&shape)?;
        let block = match layout.size() {
            0 => NonNull::without_provenance(layout.align().try_into().ok()?),
            _ => allocator.allocate(layout)?,
        };
        #[cfg(loom)]
        // SAFETY: `Places` puts the slots at 0, and the block is new. (Cells of loom have a state.)
        drop(unsafe {
            let slots = (0..shape.n_registers()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
            Part::<Slot>::init(block, 0, slots)
        });
        let zeros = || (0..n_bits).map(|_| AtomicU64::new(0));
        // SAFETY: `Places` reserves these bits at this offset.
        let awaited = unsafe { Part::init(block, awaited, zeros()) };
        // SAFETY: as above.
        let returning = unsafe { Part::init(block, returning, zeros()) };
        let begun = shape.begun().map(|begun| &begun.words);
        let counts = begun.map_or(shape.waits(), |words| words).iter();
        let counts = counts.map(|count| AtomicU32::new(*count));
        // SAFETY: as above.
        let words = unsafe { Part::init(block, words, counts) };
        let forwards = shape.read_by_marked().iter().copied().map(Forward::new);
        let forwards = UnsafeCell::new(forwards.collect());
        Some(Registers {
            shape,
            allocator: allocator.clone(),
            block,
            layout,
            awaited,
            returning,
            words,
            shared: AtomicBool::new(false),
            forwards,
            entered: AtomicBool::new(false),
            results_taken: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        })
    }

    #[inline(always)]
    pub(crate) fn shape(&self) -> &Arc<DataflowPlan> {
        &self.shape
    }

    /// The bytes that a call of this shape asks the allocator for.
    pub(crate) fn size_bytes(shape: &DataflowPlan) -> usize {
        Places::of(shape).map_or(usize::MAX, |places| places.layout.size())
    }

    #[inline(always)]
    fn slots(&self) -> Slots<'_> {
        // SAFETY: the slots of all registers lie at the start of the block, which lives as long as
        // `self`.
        unsafe { Slots::new(self.block.cast()) }
    }

    #[inline(always)]
    fn word(&self, kernel: u32) -> &AtomicU32 {
        debug_assert!((kernel as usize) < self.words.len);
        // SAFETY: rights, and lists of users, name kernels of the shape, which has a word for each.
        unsafe { self.words.as_slice().get_unchecked(kernel as usize) }
    }

    #[inline(always)]
    pub(crate) fn is_shared(&self) -> bool {
        // Ordering: a thread that was let in sees the store, which came before; the confined
        // thread sees its own.
        self.shared.load(Ordering::Relaxed)
    }

    /// Lets other threads in: gives each returned register that is not filled yet the value that
    /// callers will hold. Tells whether this changed anything.
    ///
    /// Called before whatever lets them in, by a thread that may use these registers.
    pub(crate) fn share(&self) -> bool {
        if self.shared.load(Ordering::Relaxed) {
            return false;
        }
        self.promise_results();
        // Ordering: what lets others in releases; see `is_shared`.
        self.shared.store(true, Ordering::Relaxed);
        true
    }

    /// Gives each returned register that is not filled yet the value that callers will hold. While
    /// these are confined.
    pub(crate) fn promise_results(&self) {
        if self.shared.load(Ordering::Relaxed) {
            return;
        }
        let returned = self.shape.returned().iter().map(|(register, _)| *register);
        let unfilled =
            |register: &u32| !self.holds_returns(*register) && !self.has_forward(*register);
        let more: Vec<Forward> = returned.filter(unfilled).map(Forward::new).collect();
        if more.is_empty() {
            return;
        }
        self.forwards.with_mut(|forwards| {
            // SAFETY: confined to this thread, which holds no reference into the list.
            let forwards = unsafe { &mut *forwards };
            forwards.extend(more);
            sort_unstable_by(forwards, |a, b| a.register.cmp(&b.register));
        });
    }

    /// Looks at the forwarding value of a register.
    fn with_forward<R>(&self, register: u32, look: impl FnOnce(&Forward) -> R) -> Option<R> {
        self.forwards.with(|forwards| {
            // SAFETY: the list changes only in `share`, while confined, and `look` does not call
            // that.
            let forwards = unsafe { &*forwards };
            let index = forwards.binary_search_by_key(&register, |forward| forward.register);
            index.ok().map(|index| look(&forwards[index]))
        })
    }

    fn has_forward(&self, register: u32) -> bool {
        self.with_forward(register, |_| ()).is_some()
    }

    /// Returns the value that stands for a register which marked kernels read, or which is returned more than once.
    fn forward_handle(&self, register: u32) -> Option<AnyAsyncValue> {
        let handle = self.with_forward(register, |forward| {
            // SAFETY: of such registers nobody takes the handle (`take_forward_handle`).
            forward.handle.with(|handle| unsafe { &*handle }.clone())
        });
        handle.flatten()
    }

    /// Returns the value that stands for a returned register; the call keeps none, unless somebody else wants one. For
    /// the thread that takes the results, once.
    fn take_forward_handle(&self, register: u32) -> Option<AnyAsyncValue> {
        let returned = self.shape.returned();
        let index = returned.binary_search_by_key(&register, |(register, _)| *register);
        let is_returned_once = index.is_ok_and(|index| returned[index].1 == 1);
        let is_marked = self.shape.read_by_marked().binary_search(&register).is_ok();
        if !is_returned_once || is_marked {
            return self.forward_handle(register);
        }
        let handle = self.with_forward(register, |forward| {
            // SAFETY: results are taken once, by one thread, and nobody else looks at the handle of a register that no
            // marked kernel reads: `forward_handle` is asked for those of such, and here.
            forward
                .handle
                .with_mut(|handle| unsafe { &mut *handle }.take())
        });
        handle.flatten()
    }

    /// Tells whether a slot holds references for a register's returns: it was filled while
    /// confined. For the thread that began the call, or when the call is dropped.
    fn holds_returns(&self, register: u32) -> bool {
        let (word, bit) = bit(register);
        // Ordering: written only while confined to this thread.
        self.returning.as_slice()[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Begins the call: gives the rights to start the kernels without operands.
    ///
    /// # Panics
    ///
    /// If the call was begun before.
    pub(crate) fn begin(&self, mut ready: impl FnMut(Ready)) -> Arguments {
        // Ordering: one thread comes here first, and nobody waits for another.
        let entered = self.entered.swap(true, Ordering::Relaxed);
        assert!(!entered, "a call is begun once");
        if self.shape.begun().is_some() {
            // They stand as for a call that has its arguments.
            // SAFETY: nobody has a right yet, so no other thread looks at them.
            unsafe { self.words.set(self.shape.waits()) };
        }
        for kernel in self.shape.entry_users() {
            // They wait for one thing, which is this.
            ready(Ready { kernel: *kernel });
        }
        Arguments {
            next: 0,
            block: self.block,
        }
    }

    /// The right to fill the next argument.
    ///
    /// # Panics
    ///
    /// If `arguments` came from other registers.
    pub(crate) fn next_argument(&self, arguments: &mut Arguments) -> Option<Fill> {
        assert!(
            arguments.block == self.block,
            "a right of one call is none of another"
        );
        let output = self.shape.arguments().outputs().get(arguments.next)?;
        arguments.next += 1;
        let register = output.register;
        Some(Fill { register })
    }

    /// Counts down the users of a filled register that can do with a handle.
    ///
    /// # Safety
    ///
    /// `filled` came from these registers.
    pub(crate) unsafe fn count_early(&self, filled: &mut Filled, ready: impl FnMut(Ready)) {
        if !std::mem::replace(&mut filled.early_done, true) {
            let (_, users) = self.shape.definition(filled.register);
            self.count_list(users.early(), ready);
        }
    }

    /// Counts down all users of a filled register that have not been.
    ///
    /// # Safety
    ///
    /// `filled` came from these registers.
    pub(crate) unsafe fn count_all(&self, filled: Filled, ready: impl FnMut(Ready)) {
        let (_, users) = self.shape.definition(filled.register);
        match filled.early_done {
            true => self.count_list(users.late(), ready),
            false => self.count_list(users.all(), ready),
        }
    }

    #[inline(always)]
    fn count_list(&self, users: impl Iterator<Item = u32>, mut ready: impl FnMut(Ready)) {
        for user in users {
            if let Some(right) = self.count_down(user) {
                ready(right);
            }
        }
    }

    /// Counts a kernel down for one of its operands that was filled.
    #[inline(always)]
    fn count_down(&self, kernel: u32) -> Option<Ready> {
        let word = self.word(kernel);
        // Ordering: confined, or only the mark is looked at, which does not change.
        let before = word.load(Ordering::Relaxed);
        let is_last = if before >= MARKED {
            self.claim_marked(word)
        } else if !self.is_shared() {
            // Ordering: confined.
            word.store(before - 1, Ordering::Relaxed);
            before == 1
        } else {
            // Ordering: releases the filled register to whoever takes the count to zero, and
            // acquires what the others who counted down released.
            word.fetch_sub(1, Ordering::AcqRel) == 1
        };
        is_last.then_some(Ready { kernel })
    }

    #[cold]
    fn claim_marked(&self, word: &AtomicU32) -> bool {
        // Ordering: the winner may read what the publisher it stands for wrote before.
        let won = word.compare_exchange(MARKED | 1, MARKED, Ordering::AcqRel, Ordering::Relaxed);
        won.is_ok()
    }

    /// Starts a kernel: the right to its results, and that to one run of it with its operands, unless
    /// it is marked; see [`Self::handles`].
    ///
    /// # Safety
    ///
    /// `ready` came from these registers, and `record` is its kernel's.
    #[inline(always)]
    pub(crate) unsafe fn start<'r>(
        &'r self,
        ready: Ready,
        record: Record<'r>,
    ) -> (Started, Option<Activation<'r>>) {
        let word = self.word(ready.kernel());
        // Ordering: `Ready` is the only right to change this word; the drop of the call reads it.
        let mark = word.load(Ordering::Relaxed) & MARKED;
        word.store(STARTED | mark, Ordering::Relaxed);
        let started = Started {
            kernel: ready.kernel(),
            left: None,
            n_put: 0,
            n_filled: 0,
        };
        if mark != 0 {
            return (started, None);
        }
        // SAFETY: the kernel was counted down to zero, so each operand is filled (I1) with a
        // reference for it (I2), and that happened before. `Ready` makes it the only activation.
        let activation = unsafe { Activation::new(self.slots(), record) };
        (started, Some(activation))
    }

    /// The run of a kernel has left its operands from this one on.
    ///
    /// # Safety
    ///
    /// It has, and they are left to this right.
    pub(crate) unsafe fn leave_operands(&self, started: &mut Started, first: u32) {
        started.left = Some(first);
    }

    /// Takes the operands that the run of a kernel has left.
    ///
    /// # Safety
    ///
    /// `started` came from these registers.
    pub(crate) unsafe fn take_left(&self, started: &mut Started) -> Vec<AnyAsyncValue> {
        let Some(first) = started.left.take() else {
            return Vec::new();
        };
        let operands = &self.shape.record(started.kernel).operands()[first as usize..];
        // SAFETY: filled, as all operands of a started kernel; left to the right, which gives them out
        // once.
        let take = |register: &u32| unsafe { self.slots().take(*register) };
        operands.iter().map(take).collect()
    }

    /// The operands of a marked kernel that was started.
    pub(crate) fn handles(&self, started: &Started) -> Vec<AnyAsyncValue> {
        let operands = self.shape.record(started.kernel).operands();
        let handles = operands
            .iter()
            .filter_map(|register| self.forward_handle(*register));
        handles.map(AnyAsyncValue::settled).collect()
    }

    /// Gives all results of a kernel to their readers: they are put, and values in place. The kernel is
    /// to be counted as ended.
    ///
    /// # Safety
    ///
    /// `started` came from these registers, and `record` is its kernel's.
    #[inline(always)]
    pub(crate) unsafe fn finish_plain(
        &self,
        started: Started,
        record: CountedRecord<'_>,
        mut ready: impl FnMut(Ready),
    ) {
        let outputs = record.record().outputs();
        if outputs.iter().any(|output| output.may_be_forwarded()) {
            // Whoever waits outside hears of an output when the users of those before are counted.
            for output in outputs {
                if output.may_be_forwarded() {
                    self.fill_special(*output);
                }
                let (_, users) = self.shape.definition(output.register);
                self.count_list(users.all(), &mut ready);
            }
        } else {
            record.for_users(|user| {
                if let Some(right) = self.count_down(user) {
                    ready(right);
                }
            });
        }
        let _ = started;
    }

    /// A thread leaves in the middle: see [`Registers::given_up`].
    pub(crate) fn give_up(&self) {
        // Ordering: read when these are dropped, which comes after all else.
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Fills a register that is returned, or read by marked kernels, with a value in place that its
    /// producer has put.
    #[cold]
    fn fill_special(&self, output: Output) {
        // SAFETY: the producer's run has put it, and its users were not counted down yet.
        let value = unsafe { self.slots().take(output.register) };
        let _users_are_counted_next = self.fill_with(output, value);
    }

    /// The right to fill the next result of a started kernel, in order, and its value if the run of
    /// the kernel has put it.
    ///
    /// # Safety
    ///
    /// `started` came from these registers.
    #[inline]
    pub(crate) unsafe fn next_result(
        &self,
        started: &mut Started,
    ) -> Option<(Fill, Option<AnyAsyncValue>)> {
        let outputs = self.shape.record(started.kernel).outputs();
        let register = outputs.get(started.n_filled as usize)?.register;
        let is_put = started.n_filled < started.n_put;
        started.n_filled += 1;
        // SAFETY: put as one reference, which `n_filled` makes us take once; its users were not
        // counted down.
        let value = is_put.then(|| unsafe { self.slots().take(register) });
        Some((Fill { register }, value))
    }

    /// A kernel's results are to come from a call.
    ///
    /// # Safety
    ///
    /// `started` came from these registers.
    pub(crate) unsafe fn suspend(&self, started: &Started) {
        let word = self.word(started.kernel);
        // Ordering: read when the call is dropped.
        let value = word.load(Ordering::Relaxed) | PENDING;
        word.store(value, Ordering::Relaxed);
    }

    /// A kernel's results are all filled or left.
    ///
    /// # Safety
    ///
    /// `started` came from these registers.
    #[inline(always)]
    pub(crate) unsafe fn finish(&self, started: Started) {
        let _ = started;
    }

    /// The right to the results of a kernel.
    ///
    /// # Safety
    ///
    /// It was started, and nobody else has the right.
    #[inline(always)]
    pub(crate) unsafe fn started(&self, kernel: u32) -> Started {
        Started {
            kernel,
            left: None,
            n_put: 0,
            n_filled: 0,
        }
    }

    /// The results of a kernel that was suspended have come.
    ///
    /// # Safety
    ///
    /// `started` came from these registers.
    pub(crate) unsafe fn resume(&self, started: &Started) {
        let word = self.word(started.kernel);
        // Ordering: read when the call is dropped.
        let value = word.load(Ordering::Relaxed) & !PENDING;
        word.store(value, Ordering::Relaxed);
    }

    /// Takes the right to fill a register whose kernel was suspended, if it was: its results are to come
    /// from elsewhere.
    ///
    /// # Safety
    ///
    /// The register is the only result of the kernel. If it was suspended, its right is the caller's.
    #[inline]
    pub(crate) unsafe fn take_up(&self, kernel: u32, register: u32) -> Option<Fill> {
        let word = self.word(kernel);
        // Ordering: changed by the holder of the right only; read when the call is dropped.
        let value = word.load(Ordering::Relaxed);
        if value & PENDING == 0 {
            return None;
        }
        word.store(value & !PENDING, Ordering::Relaxed);
        Some(Fill { register })
    }

    /// Fills the only result of a kernel with a value in place, and counts its users down.
    ///
    /// # Safety
    ///
    /// `fill` came from these registers, and is that of the kernel's only result.
    #[inline]
    pub(crate) unsafe fn fill_in_place(
        &self,
        fill: Fill,
        kernel: u32,
        value: AnyAsyncValue,
        ready: impl FnMut(Ready),
    ) {
        // SAFETY: the right to fill it is the only one to touch the slot.
        unsafe { self.slots().put(fill.register, value) };
        // SAFETY: as if the kernel had put it when it ran.
        let started = unsafe { self.started(kernel) };
        // SAFETY: the record is the kernel's.
        unsafe { self.finish_plain(started, self.shape.counted_record(kernel), ready) };
    }

    /// Leaves a register to be filled by whoever claims it.
    ///
    /// # Safety
    ///
    /// `fill` came from these registers.
    pub(crate) unsafe fn leave(&self, fill: Fill) {
        let (word, bit) = bit(fill.register);
        // Ordering: pairs with the claim, which may come from any thread; and with whoever gives the
        // request up, by the one order of such operations (`RequestContext::cancel_with`).
        self.awaited.as_slice()[word].fetch_or(bit, Ordering::SeqCst);
    }

    /// Takes the right to fill a register that was left, if nobody took it before.
    pub(crate) fn claim(&self, register: u32) -> Option<Fill> {
        let (word, bit) = bit(register);
        // Ordering: pairs with `leave`, and with the claims that came before.
        let before = self.awaited.as_slice()[word].fetch_and(!bit, Ordering::AcqRel);
        (before & bit != 0).then_some(Fill { register })
    }

    /// Tells whether a register is left to be claimed, at this moment.
    pub(crate) fn is_awaited(&self, register: u32) -> bool {
        let (word, bit) = bit(register);
        // Ordering: the claim decides; but see `leave`.
        self.awaited.as_slice()[word].load(Ordering::SeqCst) & bit != 0
    }

    /// Fills a register, and tells those outside who hold a value for it.
    ///
    /// The value may be a handle; then counting down the users that need more than a handle is to
    /// wait until it has settled.
    ///
    /// # Safety
    ///
    /// `fill` came from these registers.
    pub(crate) unsafe fn fill(&self, fill: Fill, value: AnyAsyncValue) -> Filled {
        self.fill_with(self.shape.definition(fill.register).0, value)
    }

    /// Fills a register; the caller used the right to it.
    fn fill_with(&self, output: Output, value: AnyAsyncValue) -> Filled {
        let register = output.register;
        let n_references = output.n_references() as usize;
        let promise = self.with_forward(register, |forward| {
            // SAFETY: there is one right to fill this register, which the caller used, and only that
            // takes the promise.
            forward
                .promise
                .with_mut(|promise| unsafe { &mut *promise }.take())
        });
        match promise.flatten() {
            Some(promise) => {
                let uses = n_references - self.n_returns(output);
                if uses > 0 {
                    value.retain(uses);
                    // SAFETY: `uses` references were just retained for the slot, beside `value`.
                    unsafe { self.write_slot(register, &value) };
                }
                promise.forward(value);
            }
            None if n_references > 0 => {
                if output.is_returned() {
                    let (word, bit) = bit(register);
                    let word = &self.returning.as_slice()[word];
                    // Ordering: without a promise these registers are confined.
                    word.store(word.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
                }
                value.retain(n_references - 1);
                // SAFETY: `value` itself is the last of the references for the slot: it is
                // forgotten at once.
                unsafe { self.write_slot(register, &value) };
                std::mem::forget(value);
            }
            None => drop(value),
        }
        Filled {
            register,
            early_done: false,
        }
    }

    /// How often the function returns a register.
    fn n_returns(&self, output: Output) -> usize {
        if !output.is_returned() {
            return 0;
        }
        let returned = self.shape.returned();
        let index = returned.binary_search_by_key(&output.register, |(register, _)| *register);
        index.map_or(0, |index| returned[index].1 as usize)
    }

    /// Writes a slot with a bitwise copy of `value`.
    ///
    /// # Safety
    ///
    /// The caller used the right to fill this register, and gives the slot as many references to the
    /// value as the register has uses (and returns, if no forwarding value stands for it).
    unsafe fn write_slot(&self, register: u32, value: &AnyAsyncValue) {
        // SAFETY: the copy stands for the references that the caller gives.
        let copy = unsafe { std::ptr::read(value) };
        // SAFETY: the right to fill it is the only one to write this slot, and nobody reads it before
        // a count that follows (I1), nor while the call is dropped.
        unsafe { self.slots().put(register, copy) };
    }

    /// Gives the results to the caller: values, or handles for what is to come. `None` stands for
    /// a register that was neither filled nor forwarded, which only a fault of ours can leave.
    ///
    /// Called by the thread that began the call, when everything that it could run has run; or
    /// before the call is begun, if it is shared.
    ///
    /// # Panics
    ///
    /// If the results were taken before.
    pub(crate) fn take_results(&self) -> impl Iterator<Item = Option<AnyAsyncValue>> {
        // Ordering: one thread comes here.
        let taken = self.results_taken.swap(true, Ordering::Relaxed);
        assert!(!taken, "the results of a call are taken once");
        self.shape.result_registers().iter().map(|register| {
            if let Some(handle) = self.take_forward_handle(*register) {
                return Some(handle.settled());
            }
            // SAFETY: `holds_returns`: filled by this thread while confined, with a reference for
            // each time that the register stands in this list, which is gone through once.
            self.holds_returns(*register)
                .then(|| unsafe { self.slots().take(*register) })
        })
    }

    /// Tells whether a register is filled, when no one else can reach these registers.
    fn is_filled(&self, register: u32) -> bool {
        let is_finished = match self.shape.producer(register) {
            // Ordering: as the function says.
            Some(kernel) => {
                self.word(kernel).load(Ordering::Relaxed) & (STARTED | PENDING) == STARTED
            }
            None => self.entered.load(Ordering::Relaxed),
        };
        is_finished && !self.is_awaited(register)
    }
}

fn bit(register: u32) -> (usize, u64) {
    ((register / 64) as usize, 1 << (register % 64))
}

/// The rights to fill the arguments, in order.
pub(crate) struct Arguments {
    next: usize,
    block: NonNull<u8>,
}

impl Drop for Registers {
    /// Releases what was not taken: a queue may drop tasks, and a failed call may end early.
    fn drop(&mut self) {
        let n_kernels = self.shape.n_kernels() as u32;
        // Ordering: `&mut self`.
        let is_known = !self.given_up.load(Ordering::Relaxed);
        // Kernels that were started took their operands.
        // SAFETY: `&mut self`.
        let is_over = unsafe { self.words.all_have(STARTED) } || !is_known;
        for kernel in if is_over { 0..0 } else { 0..n_kernels } {
            // Ordering: `&mut self`.
            let word = self.word(kernel).load(Ordering::Relaxed);
            if word & (STARTED | MARKED) != 0 {
                continue;
            }
            for register in self.shape.record(kernel).operands() {
                if self.is_filled(*register) {
                    // SAFETY: filled, and the kernel, never started, did not take its use.
                    drop(unsafe { self.slots().take(*register) });
                }
            }
        }
        // Ordering: `&mut self`.
        if is_known && !self.results_taken.load(Ordering::Relaxed) {
            for register in self.shape.result_registers() {
                if self.holds_returns(*register) {
                    // SAFETY: filled, and its returns were never taken.
                    drop(unsafe { self.slots().take(*register) });
                }
            }
        }
        // The parts need no drop of their own: atomics, and slots whose references are gone.
        if self.layout.size() > 0 {
            // SAFETY: allocated in `new` from this allocator with this layout; nothing refers to
            // it any more.
            unsafe { self.allocator.deallocate(self.block, self.layout) };
        }
    }
}
