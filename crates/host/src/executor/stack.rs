//! A stack of calls whose kernels run in order.
//!
//! Each [`Level`] is one call: its slots, and the number of the next kernel. Kernels run in the
//! order of the shape, which is topological, so their operands are there without anybody counting.
//! [`Stack::run`] is the innermost loop of the runtime: per kernel it looks at the cancellation,
//! reads one record and makes one indirect call.
//!
//! The slots of a level follow those of the level below in a chunk of memory, so that a call costs
//! no allocation.
//!
//! # Invariants
//!
//! * S1. The slots of a level are those of its shape, and lie in a chunk that outlives the level.
//!   Levels that follow it lie behind it, or in later chunks.
//! * S2. When a kernel is started, all arguments and all results of kernels before it are filled, with
//!   a reference for each of their readers and returns. [`State`] says how far the last one is.
//! * S3. Each level is used by one thread.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, Error, HostAllocator};

use super::reason_to_skip;
use super::slots::{Activation, Record, Slot, Slots};
use super::topology::{Manner, Topology};
use crate::kernel::{Status, Surroundings};
use crate::request::RequestContext;

/// Slots are allocated by so many at least.
const MIN_CHUNK: usize = 64;

/// Room for the slots of small calls, so that these allocate nothing.
pub(super) struct LocalSlots([MaybeUninit<Slot>; MIN_CHUNK]);

impl LocalSlots {
    #[inline]
    pub(super) fn new() -> Self {
        LocalSlots([const { MaybeUninit::uninit() }; MIN_CHUNK])
    }
}

/// Memory for slots.
struct Chunk {
    start: NonNull<Slot>,
    n_slots: usize,
    n_used: usize,
    /// It comes from the allocator.
    is_allocated: bool,
}

impl Chunk {
    const EMPTY: Chunk = Chunk {
        start: NonNull::dangling(),
        n_slots: 0,
        n_used: 0,
        is_allocated: false,
    };
}

/// How far the last kernel of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// All its results are filled for their readers.
    Settled,
    /// So many results are put, each with one reference.
    Put(u32),
    /// None is put, and operands from this one on are left: they are arguments of a call.
    Left(u32),
    /// All kernels have run, and the results of the call were taken.
    Over,
}

/// One call in progress, and what its caller keeps with it.
struct Level<'f, T> {
    topology: &'f Topology,
    slots: NonNull<Slot>,
    /// The kernel that runs next; that before it is the last.
    next: u32,
    state: State,
    /// It is the first of its chunk: the chunk before is used again when it ends.
    is_first_of_chunk: bool,
    kept: T,
}

/// What is kept with a call for the kernel that has made it.
pub(super) trait Kept: Default {
    /// Whether there is nothing to do with it when the call returns but to drop it.
    fn is_nothing(&self) -> bool;
}

/// Calls in progress, each made by the one below it.
pub(super) struct Stack<'f, T: Kept> {
    allocator: &'f Arc<dyn HostAllocator>,
    /// More calls than these are refused.
    max_levels: usize,
    levels: Vec<Level<'f, T>>,
    chunk: Chunk,
    /// Chunks before, in use in full.
    full: Vec<Chunk>,
    /// One that is not in use.
    spare: Chunk,
}

/// Why [`Stack::run`] has returned.
pub(super) enum Pause {
    /// All kernels of the topmost call have run.
    End,
    /// The results of the last kernel are not settled; this is how it has returned.
    Unsettled(Status),
    /// The request was cancelled before the last kernel was run; this is what its results are to be.
    Cancelled(Error),
}

impl<'f, T: Kept> Stack<'f, T> {
    /// Slots of small calls lie in `local`; others come from `allocator`.
    pub(super) fn new(
        allocator: &'f Arc<dyn HostAllocator>,
        max_levels: usize,
        local: &'f mut LocalSlots,
    ) -> Self {
        Stack {
            allocator,
            max_levels,
            levels: Vec::with_capacity(4),
            chunk: Chunk {
                start: NonNull::from(&mut local.0).cast(),
                n_slots: MIN_CHUNK,
                n_used: 0,
                is_allocated: false,
            },
            full: Vec::new(),
            spare: Chunk::EMPTY,
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    fn top(&self) -> &Level<'f, T> {
        self.levels.last().expect("a call is in progress")
    }

    fn top_mut(&mut self) -> &mut Level<'f, T> {
        self.levels.last_mut().expect("a call is in progress")
    }

    /// The function of the topmost call.
    pub(super) fn topology(&self) -> &'f Topology {
        self.top().topology
    }

    pub(super) fn kept(&mut self) -> &mut T {
        &mut self.top_mut().kept
    }

    /// The kernel that has run last in the topmost call.
    pub(super) fn kernel(&self) -> u32 {
        self.top().next - 1
    }

    /// How many bytes a call of a function takes at least.
    pub(super) fn size_bytes(topology: &Topology) -> usize {
        topology.shape().n_registers() * size_of::<Slot>()
    }

    /// Begins a call with these arguments, of the right number, and leaves the list empty. `false` if
    /// there is no memory for it.
    pub(super) fn push(
        &mut self,
        topology: &'f Topology,
        arguments: &mut Vec<AnyAsyncValue>,
        kept: T,
    ) -> bool {
        let shape = topology.shape();
        assert!(
            shape.is_ordered() && arguments.len() == shape.n_arguments(),
            "the call fits the function"
        );
        let n_slots = shape.n_registers();
        let is_first_of_chunk = self.chunk.n_slots - self.chunk.n_used < n_slots;
        if is_first_of_chunk && !self.grow(n_slots) {
            return false;
        }
        // SAFETY: so many slots are left in the chunk.
        let slots = unsafe { self.chunk.start.add(self.chunk.n_used) };
        self.chunk.n_used += n_slots;
        self.levels.push(Level {
            topology,
            slots,
            next: 0,
            state: State::Settled,
            is_first_of_chunk,
            kept,
        });
        // SAFETY: S1.
        let slots = unsafe { Slots::new(slots) };
        for (output, value) in shape.arguments().outputs().iter().zip(arguments.drain(..)) {
            match output.n_references() {
                0 => drop(value),
                n => {
                    value.retain(n as usize - 1);
                    // SAFETY: the slots are new; the shape says that the register exists.
                    unsafe { slots.put(output.register, value) };
                }
            }
        }
        true
    }

    /// Begins another chunk.
    #[cold]
    fn grow(&mut self, n_slots: usize) -> bool {
        if self.spare.n_slots >= n_slots {
            let chunk = std::mem::replace(&mut self.spare, Chunk::EMPTY);
            self.full.push(std::mem::replace(&mut self.chunk, chunk));
            return true;
        }
        // Room for what is called from there, too.
        let n_slots = n_slots
            .saturating_add(MIN_CHUNK)
            .max(self.chunk.n_slots.saturating_mul(2).min(1 << 16));
        let Ok(layout) = Layout::array::<Slot>(n_slots) else {
            return false;
        };
        let Some(block) = self.allocator.allocate(layout) else {
            return false;
        };
        let chunk = Chunk {
            start: block.cast(),
            n_slots,
            n_used: 0,
            is_allocated: true,
        };
        let before = std::mem::replace(&mut self.chunk, chunk);
        self.full.push(before);
        true
    }

    fn free(&self, chunk: &Chunk) {
        if chunk.is_allocated {
            let layout = Layout::array::<Slot>(chunk.n_slots).expect("it was allocated");
            // SAFETY: allocated in `grow` from this allocator with this layout, and no level is left
            // in it.
            unsafe { self.allocator.deallocate(chunk.start.cast(), layout) };
        }
    }

    /// Runs kernels of the topmost call until one asks for attention.
    ///
    /// # Panics
    ///
    /// If a kernel does. Its operands are released then, and its results unsettled.
    pub(super) fn run<const WATCHED: bool>(&mut self, around: &mut Surroundings<'f>) -> Pause {
        loop {
            let pause = self.run_level::<WATCHED>(around);
            let goes_on = match &pause {
                Pause::Unsettled(status) => status.is_call() && !WATCHED && self.try_call(around),
                Pause::End => self.try_return(),
                Pause::Cancelled(_) => false,
            };
            if !goes_on {
                return pause;
            }
        }
    }

    /// Runs kernels of the topmost call until one has not just put values in place.
    #[inline(always)]
    fn run_level<const WATCHED: bool>(&mut self, around: &mut Surroundings<'f>) -> Pause {
        let level = self.top_mut();
        assert!(
            level.state == State::Settled,
            "kernels run one after another"
        );
        let topology = level.topology;
        around.topology = topology;
        let shape: &'f _ = topology.shape();
        let entries = topology.entries();
        // SAFETY: S1.
        let slots: Slots<'f> = unsafe { Slots::new(level.slots) };
        let request: &RequestContext = around.request;
        if WATCHED {
            request.begin_watch();
        }
        // Calls in progress at the same time have slots of their own.
        let call = level.slots.addr().get() as u64;
        // Should a kernel panic, it has put nothing, and its operands are released.
        level.state = State::Put(0);
        for (kernel, record) in shape.records_from(level.next) {
            level.next = kernel + 1;
            around.kernel = kernel;
            // SAFETY: the record is of this shape, whose slots these are (S1). The order is
            // topological and all kernels before have settled results (S2, S3), so the operands are
            // filled, with a reference for each; a kernel is activated once, since `next` has moved
            // on.
            let activation = unsafe { Activation::new(slots, record) };
            let entry = &entries[record.code() as usize];
            let status = if WATCHED {
                let _watch = request.watch(topology, kernel, call);
                if request.is_cancelled() {
                    return Pause::Cancelled(reason_to_skip(around, activation));
                }
                entry.code.call(activation, around)
            } else {
                if request.is_cancelled() {
                    return Pause::Cancelled(reason_to_skip(around, activation));
                }
                entry.code.call(activation, around)
            };
            if status != Status::PLAIN {
                level.state = match status.is_call() {
                    true => State::Left(around.scratch.n_taken),
                    false => State::Put(around.scratch.n_put),
                };
                return Pause::Unsettled(status);
            }
        }
        level.state = State::Settled;
        Pause::End
    }

    /// Begins the call that the last kernel asks for, if all is as it mostly is.
    fn try_call(&mut self, around: &mut Surroundings<'f>) -> bool {
        let Some(callee) = around.scratch.callee else {
            return false;
        };
        let Some(function) = callee.own_index(around.program) else {
            return false;
        };
        let level = self.top();
        let State::Left(first) = level.state else {
            return false;
        };
        let (from, record) = self.record();
        let arguments = &record.operands()[first as usize..];
        let is_in_place = |register: &u32| {
            // SAFETY: filled, as all operands of a kernel that was started, and left to us.
            let value = unsafe { from.peek(*register) };
            value.is_plain() && !value.is_counted()
        };
        let topology = around.program.topology(function);
        let outputs = topology.shape().arguments().outputs();
        let n_slots = topology.shape().n_registers();
        let is_usual = topology.manner >= Manner::OneThread
            && outputs.len() == arguments.len()
            && self.levels.len() < self.max_levels
            && self.chunk.n_slots - self.chunk.n_used >= n_slots
            && arguments.iter().all(is_in_place);
        if !is_usual {
            return false;
        }
        // SAFETY: so many slots are left in the chunk.
        let slots = unsafe { self.chunk.start.add(self.chunk.n_used) };
        self.chunk.n_used += n_slots;
        // SAFETY: S1.
        let to = unsafe { Slots::new(slots) };
        for (register, output) in arguments.iter().zip(outputs) {
            // SAFETY: as above; a value in place may be copied and forgotten at will.
            let value = unsafe { from.take(*register) };
            // SAFETY: the slots are new; the shape says that the register exists.
            unsafe { to.put(output.register, value) };
        }
        self.top_mut().state = State::Put(0);
        self.levels.push(Level {
            topology,
            slots,
            next: 0,
            state: State::Settled,
            is_first_of_chunk: false,
            kept: T::default(),
        });
        true
    }

    /// Ends the topmost call, whose kernels have all run, with its results for those of the kernel
    /// below that has made it, if all is as it mostly is.
    fn try_return(&mut self) -> bool {
        let [.., caller, level] = &*self.levels else {
            return false;
        };
        let results = level.topology.shape().result_registers();
        let outputs = caller.topology.shape().record(caller.next - 1).outputs();
        // SAFETY: S1.
        let from = unsafe { Slots::new(level.slots) };
        let is_in_place = |register: &u32| {
            // SAFETY: all kernels have settled results (S2), of which none was taken.
            let value = unsafe { from.peek(*register) };
            value.is_plain() && !value.is_counted()
        };
        let is_usual = level.kept.is_nothing()
            && caller.state == State::Put(0)
            && outputs.len() == results.len()
            && results.iter().all(is_in_place);
        if !is_usual {
            return false;
        }
        // SAFETY: S1.
        let to = unsafe { Slots::new(caller.slots) };
        for (register, output) in results.iter().zip(outputs) {
            // SAFETY: as above.
            let value = unsafe { from.take(*register) };
            // SAFETY: the results of the caller's kernel are not settled, so nobody reads them. A
            // value in place need not be counted.
            unsafe { to.put(output.register, value) };
        }
        self.drop_top();
        self.top_mut().state = State::Settled;
        true
    }

    fn record(&self) -> (Slots<'f>, Record<'f>) {
        let level = self.top();
        let topology: &'f Topology = level.topology;
        // SAFETY: S1.
        let slots = unsafe { Slots::new(level.slots) };
        (slots, topology.shape().record(level.next - 1))
    }

    /// The number of results of the last kernel.
    pub(super) fn n_results(&self) -> usize {
        self.record().1.n_results() as usize
    }

    /// The number of results of the kernel that has made the topmost call.
    pub(super) fn n_results_of_caller(&self) -> usize {
        let [.., caller, _] = &*self.levels else {
            unreachable!("there is a call below");
        };
        caller.topology.shape().record(caller.next - 1).n_results() as usize
    }

    /// Takes the operands that the last kernel has left.
    pub(super) fn take_left(&mut self, list: &mut Vec<AnyAsyncValue>) {
        let State::Left(first) = self.top().state else {
            return;
        };
        self.top_mut().state = State::Put(0);
        let (slots, record) = self.record();
        for register in &record.operands()[first as usize..] {
            // SAFETY: filled, as all operands of a kernel that was started, and left to us; the state
            // makes this the only time.
            list.push(unsafe { slots.take(*register) });
        }
    }

    /// Gives the last kernel the results that it did not put.
    pub(super) fn put_rest(&mut self, mut values: impl FnMut() -> AnyAsyncValue) {
        let State::Put(n_put) = self.top().state else {
            unreachable!("its results are not settled");
        };
        let (slots, record) = self.record();
        for output in record.outputs().iter().skip(n_put as usize) {
            // SAFETY: the results are not settled, so nobody reads these slots.
            unsafe { slots.put(output.register, values()) };
        }
        self.top_mut().state = State::Put(record.n_results());
    }

    /// Goes through the results of the last kernel, all of which were put, each with one reference: what
    /// `finish` makes of them is what their readers get.
    pub(super) fn settle(&mut self, mut finish: impl FnMut(AnyAsyncValue) -> AnyAsyncValue) {
        let (slots, record) = self.record();
        assert!(
            self.top().state == State::Put(record.n_results()),
            "all results are put"
        );
        for output in record.outputs() {
            // SAFETY: put before with one reference; nobody else reads it before it is settled.
            let value = finish(unsafe { slots.take(output.register) });
            match output.n_references() {
                0 => drop(value),
                n => {
                    value.retain(n as usize - 1);
                    // SAFETY: as above.
                    unsafe { slots.put(output.register, value) };
                }
            }
        }
        self.top_mut().state = State::Settled;
    }

    /// Ends the topmost call, whose kernels have all run, with its results appended to `results`.
    pub(super) fn pop_into(&mut self, results: &mut Vec<AnyAsyncValue>) -> T {
        self.take_results(results);
        self.pop()
    }

    /// Appends the results of the topmost call, whose kernels have all run, to `results`.
    pub(super) fn take_results(&mut self, results: &mut Vec<AnyAsyncValue>) {
        let level = self.top();
        let shape = level.topology.shape();
        assert!(
            level.state == State::Settled && level.next as usize == shape.n_kernels(),
            "all kernels have run"
        );
        // SAFETY: S1.
        let slots = unsafe { Slots::new(level.slots) };
        // SAFETY: all kernels have settled results (S2), with a reference for each return, of
        // which this list has one entry each.
        let take = |register: &u32| unsafe { slots.take(*register) };
        results.extend(shape.result_registers().iter().map(take));
        self.top_mut().state = State::Over;
    }

    /// Ends the topmost call, whose results were taken.
    pub(super) fn pop(&mut self) -> T {
        assert!(self.top().state == State::Over, "its results were taken");
        self.drop_top()
    }

    /// Begins the topmost call again, whose results were taken, with other arguments: as many, none
    /// counted. Leaves the list empty.
    pub(super) fn restart(&mut self, arguments: &mut Vec<AnyAsyncValue>) {
        let level = self.top_mut();
        let topology: &'f Topology = level.topology;
        let outputs = topology.shape().arguments().outputs();
        assert!(
            level.state == State::Over && arguments.len() == outputs.len(),
            "the call fits the function"
        );
        level.state = State::Settled;
        level.next = 0;
        // SAFETY: S1.
        let slots = unsafe { Slots::new(level.slots) };
        for (output, value) in outputs.iter().zip(arguments.drain(..)) {
            assert!(!value.is_counted(), "it needs no references");
            // SAFETY: nothing is left in these slots; the shape says that the register exists.
            unsafe { slots.put(output.register, value) };
        }
    }

    /// Ends the topmost call, whose kernels have all run, with its results put as those of the kernel
    /// of the call below that made it. That kernel's results are not settled by it.
    ///
    /// The numbers of results are equal, and there is a call below.
    pub(super) fn pop_to_caller(&mut self) -> T {
        let [.., caller, level] = &*self.levels else {
            unreachable!("there is a call below");
        };
        let shape = level.topology.shape();
        let record = caller.topology.shape().record(caller.next - 1);
        assert!(
            level.state == State::Settled && level.next as usize == shape.n_kernels(),
            "all kernels have run"
        );
        assert!(
            caller.state == State::Put(0),
            "the caller's kernel has put nothing"
        );
        let results = shape.result_registers();
        assert!(
            results.len() == record.outputs().len(),
            "the numbers are equal"
        );
        // SAFETY: S1.
        let from = unsafe { Slots::new(level.slots) };
        // SAFETY: S1.
        let to = unsafe { Slots::new(caller.slots) };
        for (register, output) in results.iter().zip(record.outputs()) {
            // SAFETY: as in `pop_into`.
            let value = unsafe { from.take(*register) };
            // SAFETY: the results of the caller's kernel are not settled, so nobody reads them.
            unsafe { to.put(output.register, value) };
        }
        let n_results = record.n_results();
        let kept = self.drop_top();
        self.top_mut().state = State::Put(n_results);
        kept
    }

    /// Ends the topmost call before its time: nothing of it is left. The results of the last kernel
    /// are settled.
    #[cold]
    pub(super) fn abandon(&mut self) -> T {
        let level = self.top();
        assert!(level.state == State::Settled, "nothing is half done");
        let shape = level.topology.shape();
        // SAFETY: S1.
        let slots = unsafe { Slots::new(level.slots) };
        let is_filled = |register: &&u32| match shape.producer(**register) {
            Some(kernel) => kernel < level.next,
            None => true,
        };
        let not_run = (level.next..shape.n_kernels() as u32).map(|kernel| shape.record(kernel));
        let operands = not_run.flat_map(Record::operands);
        for register in operands.chain(shape.result_registers()).filter(is_filled) {
            // SAFETY: filled (S2); the kernels were not started, and the results not taken.
            drop(unsafe { slots.take(*register) });
        }
        self.drop_top()
    }

    fn drop_top(&mut self) -> T {
        let level = self.levels.pop().expect("a call is in progress");
        self.chunk.n_used -= level.topology.shape().n_registers();
        if level.is_first_of_chunk {
            self.shrink();
        }
        level.kept
    }

    /// Goes back to the chunk before, unless that is no better.
    #[cold]
    fn shrink(&mut self) {
        if let Some(before) = self.full.pop() {
            let chunk = std::mem::replace(&mut self.chunk, before);
            let spare = std::mem::replace(&mut self.spare, chunk);
            self.free(&spare);
        }
    }
}

impl<T: Kept> Drop for Stack<'_, T> {
    /// A panic of our own may leave levels: what they hold is lost, but not their memory.
    fn drop(&mut self) {
        for chunk in self.full.iter().chain([&self.chunk, &self.spare]) {
            self.free(chunk);
        }
    }
}
