//! The registers of one call and the words of its kernels: who may touch which, and when.
//!
//! This is the only place where kernels' operands and results change hands between threads. It
//! knows nothing of programs and requests; `executor/frame.rs` gives it a [`Shape`] and an owner,
//! and the models in `executor/models.rs` drive it under loom. That registers and kernels are wired
//! as the code below relies on is the shape's proof.
//!
//! # Rights
//!
//! | Right | Obtained from | Allows |
//! | --- | --- | --- |
//! | [`Ready`] | a wait count that reached zero; the entry | starting one kernel, once |
//! | [`Started`] | [`Registers::start`] | taking each operand of the kernel, once, in order |
//! | [`Fill`] | [`Registers::next_result`], [`Registers::claim`], the arguments | filling one register, once |
//! | [`Filled`] | [`Registers::fill`] | counting down the register's users, each once |
//!
//! None of them can be copied or made elsewhere, and each names the registers that it belongs to,
//! by the address of their block. An address is used again once a block is given back, so whoever
//! keeps a right also keeps the call that it is a right of: `Running`, `Suspended`, the tasks and
//! the continuations of the executor all hold their frame. Everything above is safe Rust.
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
//! * I2. A slot is written once, with one reference for each use and, unless a forwarding value
//!   stands for the register, each return. Each reader copies the slot bit by bit and so takes its
//!   own reference. Nothing writes it again.
//! * I3. A kernel's word counts down what it waits for, becomes `STARTED` when its [`Ready`] is
//!   used, and `FINISHED` when its results are filled, or left to whoever claims them.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_async::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use tfrt_async::{AnyAsyncValue, AnyPromise, HostAllocator};

use super::shape::{Definition, Shape};

/// A kernel's word once the kernel has been started.
const STARTED: u32 = u32::MAX;
/// A kernel's word once its results are filled, or left.
const FINISHED: u32 = u32::MAX - 1;

/// Planted bug: a shared count that releases nothing, so that a user may miss the register.
const COUNT_DOWN: Ordering = if cfg!(tfrt_planted = "relaxed-count") {
    Ordering::Relaxed
} else {
    Ordering::AcqRel
};

/// Planted bug: counts stay plain loads and stores when the registers are shared.
const SHARING: bool = !cfg!(tfrt_planted = "unshared-count");

/// Planted bug: a slot that holds one reference too many.
const EXTRA_REFERENCES: usize = if cfg!(tfrt_planted = "slot-leak") {
    1
} else {
    0
};

/// The right to start one kernel.
#[derive(Debug)]
pub(crate) struct Ready {
    kernel: u32,
    owner: usize,
}

impl Ready {
    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }
}

/// The right to fill one register.
#[derive(Debug)]
pub(crate) struct Fill {
    definition: u32,
    owner: usize,
}

/// The right to count down the users of a register that was filled.
#[derive(Debug)]
#[must_use = "users that are not counted down never run"]
pub(crate) struct Filled {
    definition: u32,
    owner: usize,
    /// Whether those users were counted down that can do with a handle.
    early_done: bool,
}

/// The right to a started kernel's operands and results.
#[derive(Debug)]
pub(crate) struct Started {
    kernel: u32,
    owner: usize,
    n_taken: u32,
    n_filled: u32,
}

impl Started {
    pub(crate) fn kernel(&self) -> u32 {
        self.kernel
    }

    pub(crate) fn n_taken(&self) -> u32 {
        self.n_taken
    }
}

/// A value that stands for a register before the register is filled: its holders are outside of
/// the call, or are marked kernels.
struct Forward {
    register: u32,
    handle: AnyAsyncValue,
    /// Taken by whoever fills the register.
    promise: UnsafeCell<Option<AnyPromise>>,
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

type Slot = UnsafeCell<MaybeUninit<AnyAsyncValue>>;

/// An array inside the block.
struct Part<T> {
    start: NonNull<T>,
    len: usize,
    _owns: PhantomData<T>,
}

impl<T> Part<T> {
    /// Fills the `len` elements that lie `offset` bytes into `block`.
    ///
    /// # Safety
    ///
    /// They lie inside one allocation, aligned for `T`, and nobody else uses them.
    unsafe fn init(
        block: NonNull<u8>,
        offset: usize,
        len: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Part<T> {
        // SAFETY: inside the allocation, by the caller's promise.
        let start = unsafe { block.add(offset) }.cast::<T>();
        for index in 0..len {
            // SAFETY: `index` is below `len`, so the element lies inside.
            let element = unsafe { start.add(index) };
            // SAFETY: it is aligned, and ours to write.
            unsafe { element.write(make(index)) };
        }
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

/// Where the parts lie in the block: the slots at its start, the others at these offsets.
struct Places {
    layout: Layout,
    awaited: usize,
    returning: usize,
    words: usize,
}

impl Places {
    /// `None` if the block would be larger than can be addressed.
    fn of(shape: &Shape) -> Option<Places> {
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
    shape: Arc<Shape>,
    allocator: Arc<dyn HostAllocator>,
    block: NonNull<u8>,
    layout: Layout,
    slots: Part<Slot>,
    /// A bit for each register whose value is awaited: whoever clears it may fill it.
    awaited: Part<AtomicU64>,
    /// A bit for each register whose slot holds references for its returns.
    returning: Part<AtomicU64>,
    /// A word for each kernel (I3).
    words: Part<AtomicU32>,
    // Invariant: false only while a single thread can reach this.
    shared: AtomicBool,
    // Invariant: changed only while confined; ordered by register, each once.
    forwards: UnsafeCell<Vec<Forward>>,
    entered: AtomicBool,
    results_taken: AtomicBool,
    /// How many registers are filled, if kernels run in order.
    n_filled: AtomicU32,
}

impl Registers {
    /// Makes the registers of a new call, all of them empty; `None` if the allocator refuses.
    pub(crate) fn new(shape: Arc<Shape>, allocator: &Arc<dyn HostAllocator>) -> Option<Self> {
        let (n_registers, n_kernels) = (shape.n_registers(), shape.n_kernels());
        let n_bits = n_registers.div_ceil(64);
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
        // SAFETY: `Places` puts the slots at 0, and the block is new.
        let slots = unsafe {
            Part::init(block, 0, n_registers, |_| {
                UnsafeCell::new(MaybeUninit::uninit())
            })
        };
        // SAFETY: `Places` reserves these bits at this offset.
        let awaited = unsafe { Part::init(block, awaited, n_bits, |_| AtomicU64::new(0)) };
        // SAFETY: as above.
        let returning = unsafe { Part::init(block, returning, n_bits, |_| AtomicU64::new(0)) };
        let word = |kernel| AtomicU32::new(shape.kernel(kernel as u32).wait);
        // SAFETY: as above.
        let words = unsafe { Part::init(block, words, n_kernels, word) };
        let forwards = shape
            .read_by_marked()
            .iter()
            .map(|register| Forward::new(*register));
        let forwards = UnsafeCell::new(forwards.collect());
        Some(Registers {
            shape,
            allocator: allocator.clone(),
            block,
            layout,
            slots,
            awaited,
            returning,
            words,
            shared: AtomicBool::new(false),
            forwards,
            entered: AtomicBool::new(false),
            results_taken: AtomicBool::new(false),
            n_filled: AtomicU32::new(0),
        })
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes that a call of this shape asks the allocator for.
    pub(crate) fn size_bytes(shape: &Shape) -> usize {
        Places::of(shape).map_or(usize::MAX, |places| places.layout.size())
    }

    /// Names these registers in their rights. The block does not move, unlike `self`; a call
    /// without registers and kernels has no rights to name.
    fn owner(&self) -> usize {
        self.block.addr().get()
    }

    fn slot(&self, register: u32) -> &Slot {
        &self.slots.as_slice()[register as usize]
    }

    fn word(&self, kernel: u32) -> &AtomicU32 {
        &self.words.as_slice()[kernel as usize]
    }

    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        // Ordering: a thread that was let in sees the store, which came before; the confined
        // thread sees its own.
        SHARING && self.shared.load(Ordering::Relaxed)
    }

    /// Lets other threads in: gives each returned register that is not filled yet the value that
    /// callers will hold. Tells whether this changed anything.
    ///
    /// Called before whatever lets them in, by a thread that may use these registers.
    pub(crate) fn share(&self) -> bool {
        if self.shared.load(Ordering::Relaxed) {
            return false;
        }
        let unfilled =
            |register: &&u32| !self.holds_returns(**register) && !self.has_forward(**register);
        let returned = self.shape.returned().iter().filter(unfilled);
        let more: Vec<Forward> = returned.map(|register| Forward::new(*register)).collect();
        self.forwards.with_mut(|forwards| {
            // SAFETY: confined to this thread, which holds no reference into the list.
            let forwards = unsafe { &mut *forwards };
            forwards.extend(more);
            forwards.sort_unstable_by_key(|forward| forward.register);
        });
        // Ordering: what lets others in releases; see `is_shared`.
        self.shared.store(true, Ordering::Relaxed);
        true
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

    #[inline]
    fn has_forward(&self, register: u32) -> bool {
        self.with_forward(register, |_| ()).is_some()
    }

    fn forward_handle(&self, register: u32) -> Option<AnyAsyncValue> {
        self.with_forward(register, |forward| forward.handle.clone())
    }

    /// Tells whether a slot holds references for a register's returns: it was filled while
    /// confined. For the thread that began the call, or when the call is dropped.
    fn holds_returns(&self, register: u32) -> bool {
        let (word, bit) = bit(register);
        // Ordering: written only while confined to this thread.
        self.returning.as_slice()[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Begins the call: the rights to start the kernels without operands, and to fill each
    /// argument.
    ///
    /// # Panics
    ///
    /// If the call was begun before.
    pub(crate) fn begin(&self) -> (Vec<Ready>, Vec<Fill>) {
        self.enter();
        let owner = self.owner();
        // These wait for one thing, which is this.
        let entry = self.shape.entry_users().iter().map(|kernel| Ready {
            kernel: *kernel,
            owner,
        });
        (entry.collect(), self.argument_fills())
    }

    /// Begins a call whose kernels run in textual order: the rights to start them all, to be used
    /// in that order, and to fill each argument, which comes first.
    ///
    /// # Panics
    ///
    /// If the call was begun before, or the shape does not allow it.
    pub(crate) fn begin_in_order(&self) -> (InOrder, Vec<Fill>) {
        assert!(
            self.shape.may_run_in_order(),
            "only synchronous functions run in order"
        );
        self.enter();
        let n_kernels = self.shape.n_kernels() as u32;
        let n_filled = self.shape.n_arguments() as u32;
        (
            InOrder {
                next: 0,
                n_kernels,
                n_filled,
                owner: self.owner(),
            },
            self.argument_fills(),
        )
    }

    fn enter(&self) {
        // Ordering: one thread comes here first, and nobody waits for another.
        let entered = self.entered.swap(true, Ordering::Relaxed);
        assert!(!entered, "a call is begun once");
    }

    fn argument_fills(&self) -> Vec<Fill> {
        let owner = self.owner();
        // The arguments are the first definitions.
        (0..self.shape.n_arguments() as u32)
            .map(|definition| Fill { definition, owner })
            .collect()
    }

    /// Counts down the users of a filled register that can do with a handle.
    #[inline]
    pub(crate) fn count_early(&self, filled: &mut Filled, ready: impl FnMut(Ready)) {
        self.check_owner(filled.owner);
        if !std::mem::replace(&mut filled.early_done, true) {
            let (early, _) = self.shape.users(self.shape.definition(filled.definition));
            early
                .iter()
                .filter_map(|user| self.count_down(*user))
                .for_each(ready);
        }
    }

    /// Counts down all users of a filled register that have not been.
    #[inline]
    pub(crate) fn count_all(&self, mut filled: Filled, mut ready: impl FnMut(Ready)) {
        self.count_early(&mut filled, &mut ready);
        let (_, late) = self.shape.users(self.shape.definition(filled.definition));
        late.iter()
            .filter_map(|user| self.count_down(*user))
            .for_each(ready);
    }

    /// Counts a kernel down for one of its operands that was filled.
    #[inline]
    fn count_down(&self, kernel: u32) -> Option<Ready> {
        let word = self.word(kernel);
        let ready = Ready {
            kernel,
            owner: self.owner(),
        };
        if self.shape.kernel(kernel).is_marked {
            // Ordering: the winner may read what the publisher it stands for wrote before.
            let won = word.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed);
            return won.is_ok().then_some(ready);
        }
        if !self.is_shared() {
            // Ordering: confined.
            let waits = word.load(Ordering::Relaxed) - 1;
            word.store(waits, Ordering::Relaxed);
            return (waits == 0).then_some(ready);
        }
        // Ordering: releases the filled register to whoever takes the count to zero, and acquires
        // what the others who counted down released.
        (word.fetch_sub(1, COUNT_DOWN) == 1).then_some(ready)
    }

    /// Starts a kernel.
    #[inline]
    pub(crate) fn start(&self, ready: Ready) -> Started {
        self.check_owner(ready.owner);
        // Ordering: `Ready` is the only right to this word; the drop of the call reads it.
        self.word(ready.kernel).store(STARTED, Ordering::Relaxed);
        Started {
            kernel: ready.kernel,
            owner: ready.owner,
            n_taken: 0,
            n_filled: 0,
        }
    }

    #[inline]
    fn check_owner(&self, owner: usize) {
        assert!(
            owner == self.owner(),
            "a right of one call is none of another"
        );
    }

    /// Takes the next operand of a started kernel.
    #[inline]
    pub(crate) fn take_next(&self, started: &mut Started) -> Option<AnyAsyncValue> {
        self.check_owner(started.owner);
        let kernel = self.shape.kernel(started.kernel);
        let register = *self.shape.operands(kernel).get(started.n_taken as usize)?;
        started.n_taken += 1;
        if kernel.is_marked {
            return self.forward_handle(register).map(AnyAsyncValue::settled);
        }
        // SAFETY: the kernel was counted down to zero, or runs in order, so the register is filled
        // (I1), which happened before; `n_taken` makes the kernel take each of its uses once.
        Some(unsafe { self.take_slot(register) })
    }

    /// Looks at the operands of a kernel that has not taken any, in order.
    #[inline]
    pub(crate) fn any_operand(
        &self,
        started: &Started,
        mut look: impl FnMut(usize, &AnyAsyncValue) -> bool,
    ) -> bool {
        self.check_owner(started.owner);
        assert!(
            started.n_taken == 0,
            "operands are looked at before they are taken"
        );
        let kernel = self.shape.kernel(started.kernel);
        let operands = self.shape.operands(kernel);
        if kernel.is_marked {
            // `look` gets a handle of its own, so that it may do what it likes with `self`.
            let handles = operands
                .iter()
                .filter_map(|register| self.forward_handle(*register));
            return handles
                .enumerate()
                .any(|(index, handle)| look(index, &handle));
        }
        operands.iter().enumerate().any(|(index, register)| {
            self.slot(*register).with(|slot| {
                // SAFETY: the slot is filled and never written again (as in `take_next`, I2).
                let slot = unsafe { &*slot };
                // SAFETY: filled; the kernel's own reference, not yet taken, keeps it alive.
                look(index, unsafe { slot.assume_init_ref() })
            })
        })
    }

    /// Tells whether all operands of a kernel that has not taken any are values: no errors, and no
    /// handles.
    #[inline]
    pub(crate) fn all_plain(&self, started: &Started) -> bool {
        !self.any_operand(started, |_, operand| !operand.is_plain())
    }

    /// Copies a filled slot, taking over one of its references.
    ///
    /// # Safety
    ///
    /// The register is filled, that happened before, and the caller owns one of the uses or
    /// returns that the slot holds references for, and has not taken it yet.
    unsafe fn take_slot(&self, register: u32) -> AnyAsyncValue {
        self.slot(register).with(|slot| {
            // SAFETY: written before (caller's promise), and never again (I2).
            let slot = unsafe { &*slot };
            // SAFETY: initialised; the copy stands for the reference that the caller owns.
            unsafe { slot.assume_init_read() }
        })
    }

    /// The right to fill the next result of a started kernel, in order.
    #[inline]
    pub(crate) fn next_result(&self, started: &mut Started) -> Option<Fill> {
        self.check_owner(started.owner);
        let definition = self
            .shape
            .kernel(started.kernel)
            .results
            .index(started.n_filled)?;
        started.n_filled += 1;
        Some(Fill {
            definition,
            owner: started.owner,
        })
    }

    /// The register that a right is for.
    pub(crate) fn register_of(&self, fill: &Fill) -> u32 {
        self.shape.definition(fill.definition).register
    }

    /// A kernel's results are all filled or left.
    #[inline]
    pub(crate) fn finish(&self, started: Started) {
        self.check_owner(started.owner);
        // Ordering: read when the call is dropped.
        self.word(started.kernel).store(FINISHED, Ordering::Relaxed);
    }

    /// Leaves a register to be filled by whoever claims it.
    pub(crate) fn leave(&self, fill: Fill) {
        self.check_owner(fill.owner);
        assert!(
            !self.shape.may_run_in_order(),
            "the next kernel would not wait"
        );
        let (word, bit) = bit(self.register_of(&fill));
        // Ordering: pairs with the claim, which may come from any thread.
        self.awaited.as_slice()[word].fetch_or(bit, Ordering::Release);
    }

    /// Takes the right to fill a register that was left, if nobody took it before.
    pub(crate) fn claim(&self, register: u32) -> Option<Fill> {
        let (word, bit) = bit(register);
        // Ordering: pairs with `leave`, and with the claims that came before.
        let before = self.awaited.as_slice()[word].fetch_and(!bit, Ordering::AcqRel);
        let definition = self.shape.definition_of(register);
        (before & bit != 0).then(|| Fill {
            definition,
            owner: self.owner(),
        })
    }

    /// Tells whether a register is left to be claimed, at this moment.
    pub(crate) fn is_awaited(&self, register: u32) -> bool {
        let (word, bit) = bit(register);
        // Ordering: a hint; the claim decides.
        self.awaited.as_slice()[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Fills a register, and tells those outside who hold a value for it.
    ///
    /// The value may be a handle; then counting down the users that need more than a handle is to
    /// wait until it has settled.
    #[inline]
    pub(crate) fn fill(&self, fill: Fill, value: AnyAsyncValue) -> Filled {
        self.check_owner(fill.owner);
        let Definition {
            register,
            uses,
            returns,
            ..
        } = *self.shape.definition(fill.definition);
        let (uses, returns) = (uses as usize, returns as usize);
        if self.shape.may_run_in_order() {
            // Ordering: confined.
            self.n_filled
                .store(self.n_filled.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        let promise = self.with_forward(register, |forward| {
            // SAFETY: `fill` is the only right to fill this register, and only that takes the
            // promise.
            forward
                .promise
                .with_mut(|promise| unsafe { &mut *promise }.take())
        });
        let promise = promise.flatten();
        match promise {
            Some(promise) => {
                if uses > 0 {
                    value.retain(uses + EXTRA_REFERENCES);
                    // SAFETY: `uses` references were just retained for the slot, beside `value`.
                    unsafe { self.write_slot(register, &value) };
                }
                promise.forward(value);
            }
            None if uses + returns > 0 => {
                if returns > 0 {
                    let (word, bit) = bit(register);
                    let word = &self.returning.as_slice()[word];
                    // Ordering: without a promise these registers are confined.
                    word.store(word.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
                }
                value.retain(uses + returns - 1 + EXTRA_REFERENCES);
                // SAFETY: `value` itself is the last of the references for the slot: it is
                // forgotten at once.
                unsafe { self.write_slot(register, &value) };
                std::mem::forget(value);
            }
            None => drop(value),
        }
        Filled {
            definition: fill.definition,
            owner: fill.owner,
            early_done: false,
        }
    }

    /// Writes a slot with a bitwise copy of `value`.
    ///
    /// # Safety
    ///
    /// The caller used a [`Fill`] for this register, and gives the slot as many references to the
    /// value as the register has uses (and returns, if no forwarding value stands for it).
    unsafe fn write_slot(&self, register: u32, value: &AnyAsyncValue) {
        // SAFETY: the copy stands for the references that the caller gives.
        let copy = unsafe { std::ptr::read(value) };
        self.slot(register).with_mut(|slot| {
            // SAFETY: `Fill` is the only right to write this slot, and nobody reads it before a
            // count that follows (I1), nor while the call is dropped.
            let slot = unsafe { &mut *slot };
            slot.write(copy);
        });
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
    pub(crate) fn take_results(&self) -> Vec<Option<AnyAsyncValue>> {
        // Ordering: one thread comes here.
        let taken = self.results_taken.swap(true, Ordering::Relaxed);
        assert!(!taken, "the results of a call are taken once");
        let results = self.shape.result_registers().iter().map(|register| {
            if let Some(handle) = self.forward_handle(*register) {
                return Some(handle.settled());
            }
            // SAFETY: `holds_returns`: filled by this thread while confined, with a reference for
            // each time that the register stands in this list, which is gone through once.
            self.holds_returns(*register)
                .then(|| unsafe { self.take_slot(*register) })
        });
        results.collect()
    }

    /// Tells whether a register is filled, when no one else can reach these registers.
    fn is_filled(&self, register: u32) -> bool {
        let is_finished = match self.shape.producer(register) {
            // Ordering: as the function says.
            Some(kernel) => self.word(kernel).load(Ordering::Relaxed) == FINISHED,
            None => self.entered.load(Ordering::Relaxed),
        };
        is_finished && !self.is_awaited(register)
    }
}

fn bit(register: u32) -> (usize, u64) {
    ((register / 64) as usize, 1 << (register % 64))
}

/// The rights to start all kernels, in order.
pub(crate) struct InOrder {
    next: u32,
    n_kernels: u32,
    /// How many registers are filled when the next kernel may start.
    n_filled: u32,
    owner: usize,
}

impl InOrder {
    /// The right to start the next kernel, once everything that it may read is filled.
    ///
    /// # Panics
    ///
    /// If an argument, or a result of a kernel before, is not filled yet.
    pub(crate) fn next(&mut self, registers: &Registers) -> Option<Ready> {
        registers.check_owner(self.owner);
        if self.next == self.n_kernels {
            return None;
        }
        // Ordering: confined. No register is filled twice, and each kernel before was started
        // once, so equal numbers mean that all of their results are filled.
        let n_filled = registers.n_filled.load(Ordering::Relaxed);
        assert!(n_filled == self.n_filled, "kernels run one after another");
        let kernel = self.next;
        self.next += 1;
        self.n_filled += registers.shape.n_results_of(kernel) as u32;
        Some(Ready {
            kernel,
            owner: self.owner,
        })
    }
}

impl Drop for Registers {
    /// Releases what was not taken: a queue may drop tasks, and a failed call may end early.
    fn drop(&mut self) {
        for kernel in 0..self.shape.n_kernels() as u32 {
            // Ordering: `&mut self`.
            let word = self.word(kernel).load(Ordering::Relaxed);
            let kernel = self.shape.kernel(kernel);
            if word == STARTED || word == FINISHED || kernel.is_marked {
                continue;
            }
            for register in self.shape.operands(kernel) {
                if self.is_filled(*register) {
                    // SAFETY: filled, and the kernel, never started, did not take its use.
                    drop(unsafe { self.take_slot(*register) });
                }
            }
        }
        // Ordering: `&mut self`.
        if !self.results_taken.load(Ordering::Relaxed) {
            for register in self.shape.result_registers() {
                if self.holds_returns(*register) {
                    // SAFETY: filled, and its returns were never taken.
                    drop(unsafe { self.take_slot(*register) });
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
