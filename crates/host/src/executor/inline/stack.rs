//! A stack of calls whose kernels run in order.
//!
//! Each [`InlineFrame`] is one call: its slots, and the number of the next kernel. Kernels run in the
//! order of the sequence, which is topological, so their operands are there without anybody counting.
//! [`Stack::run`] is the innermost loop of the runtime: per kernel it looks at the cancellation,
//! reads one record and makes one indirect call.
//!
//! The slots of a level follow those of the level below in a chunk of memory, so that a call costs
//! no allocation.
//!
//! # Invariants
//!
//! * S1. The slots of a level are those of its sequence, and lie in a chunk that outlives the level.
//!   Levels that follow it lie behind it, or in later chunks.
//! * S2. When a kernel is started, what is still to be read or returned of the arguments, and of the
//!   results of kernels before it, lies in its slots, with a reference for each time; nothing is left in
//!   the others. [`State`] says how far the last kernel is.
//! * S3. Each level is used by one thread.
//! * S4. The last kernel of a level below the topmost has made the call above: it has put nothing, and
//!   has no operands left.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, Error, HostAllocator};

use crate::executor::plan::dataflow::Output;
use crate::executor::plan::function::FunctionPlan;
use crate::executor::plan::inline::InlinePlan;
use crate::executor::plan::records::Record;
use crate::executor::slots::{Activation, Slot, Slots};
use crate::executor::{reason_to_skip, route};
use crate::kernel::{KernelEnv, Scratch, Status};
use crate::program::LoadedProgram;
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

    #[inline(always)]
    fn n_left(&self) -> usize {
        self.n_slots - self.n_used
    }

    /// The next so many slots, which are left.
    #[inline(always)]
    fn reserve(&mut self, n_slots: usize) -> NonNull<Slot> {
        assert!(n_slots <= self.n_left(), "so many are left");
        // SAFETY: at most the length of the chunk.
        let start = unsafe { self.start.add(self.n_used) };
        self.n_used += n_slots;
        start
    }

    /// Gives its memory back, if that came from the allocator.
    fn free(&self, allocator: &dyn HostAllocator) {
        if self.is_allocated {
            let layout = Layout::array::<Slot>(self.n_slots).expect("it was allocated");
            // SAFETY: allocated in `grow` from the stack's allocator with this layout, and no level is left in it.
            unsafe { allocator.deallocate(self.start.cast(), layout) };
        }
    }
}

/// How far the last kernel of the topmost call is.
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

/// One call in progress.
#[derive(Clone, Copy)]
struct InlineFrame<'f> {
    topology: &'f FunctionPlan,
    slots: NonNull<Slot>,
    /// The kernel that runs next; that before it is the last.
    next: u32,
    /// It is the first of its chunk: the chunk before is used again when it ends.
    is_first_of_chunk: bool,
    kept: Retained,
}

/// The values that are retained for a kernel that has made a call, until the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retained {
    Nothing,
    /// Its operands.
    Operands,
    /// The loop whose turn the call is.
    Loop,
}

/// Calls in progress, each made by the one below it.
pub(super) struct Stack<'f> {
    allocator: &'f Arc<dyn HostAllocator>,
    /// More calls than these are refused.
    max_levels: usize,
    /// The number by which those who watch know the outermost call; without one calls are known by their slots.
    number: Option<u64>,
    top: InlineFrame<'f>,
    state: State,
    /// The calls below the topmost, the outermost first (S4).
    callers: Vec<InlineFrame<'f>>,
    chunk: Chunk,
    /// The chunks beside, if more than the first was needed: one that is not in use, then those before, in use in full.
    more: Vec<Chunk>,
}

/// The rest of a call of which some kernels have run, the first in the order of the sequence: the values that
/// somebody is still to read, each with one reference, and nothing in place of the others.
pub(crate) struct RemainingCall {
    /// The number of the call, if somebody was told of its kernels.
    pub(crate) number: Option<u64>,
    /// So many have run. The results of the last may be to come.
    pub(crate) n_kernels: u32,
    pub(crate) arguments: Vec<AnyAsyncValue>,
    /// Of those kernels, one after the other.
    pub(crate) results: Vec<AnyAsyncValue>,
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

impl<'f> Stack<'f> {
    /// Makes a stack whose outermost call is to be one of `topology`, which [`Self::begin`] begins.
    ///
    /// Slots of small calls lie in `local`; others come from `allocator`. More calls than `max_levels` are refused.
    #[inline(always)]
    pub(super) fn new(
        allocator: &'f Arc<dyn HostAllocator>,
        max_levels: usize,
        local: &'f mut LocalSlots,
        topology: &'f FunctionPlan,
    ) -> Self {
        let start = NonNull::from(&mut local.0).cast();
        Stack {
            allocator,
            max_levels,
            number: None,
            top: InlineFrame {
                topology,
                slots: start,
                next: 0,
                is_first_of_chunk: false,
                kept: Retained::Nothing,
            },
            state: State::Over,
            callers: Vec::new(),
            chunk: Chunk {
                start,
                n_slots: MIN_CHUNK,
                n_used: 0,
                is_allocated: false,
            },
            more: Vec::new(),
        }
    }

    /// Begins the outermost call with these arguments, of the right number, and leaves the list empty. `false` if there
    /// is no memory for it.
    #[inline(always)]
    pub(super) fn begin(&mut self, arguments: &mut Vec<AnyAsyncValue>) -> bool {
        assert!(
            self.state == State::Over && self.callers.is_empty() && self.chunk.n_used == 0,
            "no call has begun"
        );
        let Some((slots, is_first_of_chunk)) = self.place(self.top.topology, arguments) else {
            return false;
        };
        self.top.slots = slots;
        self.top.is_first_of_chunk = is_first_of_chunk;
        self.state = State::Settled;
        true
    }

    /// The outermost call, which makes none itself, is to be known by a number to those who watch.
    pub(super) fn number(&mut self, number: u64) {
        self.number = Some(number);
    }

    /// How many calls are in progress.
    pub(super) fn depth(&self) -> usize {
        self.callers.len() + 1
    }

    /// The function of the topmost call.
    pub(super) fn topology(&self) -> &'f FunctionPlan {
        self.top.topology
    }

    /// Returns what is retained until the topmost call returns.
    #[inline]
    pub(super) fn kept(&self) -> Retained {
        self.top.kept
    }

    /// Whether the results of the topmost call were taken.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The kernel that has run last in the topmost call.
    pub(super) fn kernel(&self) -> u32 {
        self.top.next - 1
    }

    /// How many bytes a call of a function takes at least.
    pub(super) fn size_bytes(topology: &FunctionPlan) -> usize {
        topology.sequence().n_slots() * size_of::<Slot>()
    }

    /// Begins a call for the last kernel, which has put nothing, with these arguments, of the right
    /// number, and leaves the list empty. `false` if there is no memory for it.
    pub(super) fn push(
        &mut self,
        topology: &'f FunctionPlan,
        arguments: &mut Vec<AnyAsyncValue>,
        kept: Retained,
    ) -> bool {
        assert!(
            self.state == State::Put(0),
            "the caller's kernel has put nothing"
        );
        let Some((slots, is_first_of_chunk)) = self.place(topology, arguments) else {
            return false;
        };
        self.callers.push(self.top);
        self.top = InlineFrame {
            topology,
            slots,
            next: 0,
            is_first_of_chunk,
            kept,
        };
        self.state = State::Settled;
        true
    }

    /// Finds slots for a call that is about to become the topmost, and moves the arguments to them; says whether they are
    /// the first of their chunk.
    #[cfg_attr(not(tfrt_for_size), inline(always))]
    #[cfg_attr(tfrt_for_size, inline(never))]
    fn place(
        &mut self,
        topology: &'f FunctionPlan,
        arguments: &mut Vec<AnyAsyncValue>,
    ) -> Option<(NonNull<Slot>, bool)> {
        let sequence = topology.sequence();
        assert!(
            arguments.len() == sequence.n_arguments(),
            "the call fits the function"
        );
        let n_slots = sequence.n_slots();
        let is_first_of_chunk = self.chunk.n_left() < n_slots;
        if is_first_of_chunk && !self.grow(n_slots) {
            return None;
        }
        let start = self.chunk.reserve(n_slots);
        // SAFETY: so many slots are the level's (S1).
        let slots = unsafe { Slots::new(start) };
        // SAFETY: the slots are new, and the first are the arguments'.
        if !unsafe { move_in_place(slots, arguments) } {
            // SAFETY: as above.
            unsafe { move_arguments(slots, sequence, arguments) };
        }
        Some((start, is_first_of_chunk))
    }

    /// Begins another chunk.
    #[cold]
    fn grow(&mut self, n_slots: usize) -> bool {
        if self.more.is_empty() {
            self.more.push(Chunk::EMPTY);
        }
        if self.more[0].n_slots >= n_slots {
            let chunk = std::mem::replace(&mut self.more[0], Chunk::EMPTY);
            self.more.push(std::mem::replace(&mut self.chunk, chunk));
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
        self.more.push(std::mem::replace(&mut self.chunk, chunk));
        true
    }

    /// Runs kernels of the topmost call until one asks for attention.
    ///
    /// # Panics
    ///
    /// If a kernel does. Its operands are released then, and its results unsettled.
    #[inline(always)]
    pub(super) fn run<const WATCHED: bool>(&mut self, around: &mut KernelEnv<'f>) -> Pause {
        loop {
            let pause = self.run_level::<WATCHED>(around);
            if let Some(pause) = self.resolve::<WATCHED>(pause, around) {
                return pause;
            }
        }
    }

    /// Does what is to be done after a pause of [`run_level`](Self::run_level), if all is as it mostly is: then kernels of
    /// the topmost call are to run. Gives the pause back if not.
    #[inline(always)]
    pub(super) fn resolve<const WATCHED: bool>(
        &mut self,
        pause: Pause,
        around: &mut KernelEnv<'f>,
    ) -> Option<Pause> {
        let program: &'f LoadedProgram = around.program;
        match &pause {
            Pause::End => {
                self.state = State::Settled;
                if self.try_return() {
                    return None;
                }
            }
            Pause::Unsettled(status) => {
                let is_usual = !WATCHED && *status == Status::CALL_IN_PLACE;
                if is_usual && self.try_call(program, around.scratch) {
                    return None;
                }
                if *status == Status::PUT && self.try_settle() {
                    return None;
                }
                self.state = match status.is_call() {
                    true => State::Left(around.scratch.n_taken),
                    false => State::Put(around.scratch.n_put),
                };
            }
            Pause::Cancelled(_) => {}
        }
        Some(pause)
    }

    /// Ends the outermost call, all kernels of which have run without making a call: appends its results to `results`.
    /// Says whether no memory is to be given back.
    #[inline(always)]
    pub(super) fn end(&mut self, results: &mut Vec<AnyAsyncValue>) -> bool {
        self.state = State::Settled;
        self.take_results(results);
        self.callers.capacity() == 0 && self.more.capacity() == 0
    }

    /// Runs kernels of the topmost call until one has not just put values in place.
    #[inline(always)]
    pub(super) fn run_level<const WATCHED: bool>(&mut self, around: &mut KernelEnv<'f>) -> Pause {
        assert!(
            self.state == State::Settled,
            "kernels run one after another"
        );
        let topology: &'f FunctionPlan = self.top.topology;
        around.topology = topology;
        let records = topology.sequence().records();
        let entrances = topology.entrances().list();
        // SAFETY: S1.
        let slots: Slots<'f> = unsafe { Slots::new(self.top.slots) };
        // Calls in progress at the same time have slots of their own.
        let call = self.number.unwrap_or(self.top.slots.addr().get() as u64);
        let request: &RequestContext = around.request;
        if WATCHED {
            request.begin_watch();
        }
        // Should a kernel panic, it has put nothing, and its operands are released.
        self.state = State::Put(0);
        let mut at = At::new(&mut self.top.next);
        while let Some(record) = records.get(at.next) {
            let kernel = at.next as u32;
            at.next += 1;
            around.kernel = kernel;
            // SAFETY: the record is of this sequence, whose slots these are (S1). The order is
            // topological and all kernels before have settled results (S2, S3), so the operands are
            // filled, with a reference for each; a kernel is activated once, since `next` has moved
            // on.
            let activation = unsafe { Activation::new(slots, record) };
            let status = if WATCHED {
                let _watch = request.watch(topology, kernel, call);
                if request.is_cancelled() {
                    return Pause::Cancelled(reason_to_skip(around, activation));
                }
                // SAFETY: the record and the entrances are of the same function.
                unsafe { entrances.enter(activation, around) }
            } else {
                if request.is_cancelled() {
                    return Pause::Cancelled(reason_to_skip(around, activation));
                }
                // SAFETY: the record and the entrances are of the same function.
                unsafe { entrances.enter(activation, around) }
            };
            if status != Status::PLAIN {
                return Pause::Unsettled(status);
            }
        }
        Pause::End
    }

    /// Gives the results of the last kernel, all of which it has put, each with one reference, to their
    /// readers, if they are values.
    #[inline(always)]
    fn try_settle(&mut self) -> bool {
        let (slots, record) = self.record();
        let is_plain = |output: &Output| {
            // SAFETY: put, and nobody else reads it before it is settled.
            unsafe { slots.peek(output.register) }.is_plain()
        };
        if !record.outputs().iter().all(is_plain) {
            return false;
        }
        for output in record.outputs() {
            match output.n_references() {
                // SAFETY: as above; nobody is going to read it.
                0 => drop(unsafe { slots.take(output.register) }),
                // SAFETY: as above.
                n => unsafe { slots.peek(output.register) }.retain(n as usize - 1),
            }
        }
        self.state = State::Settled;
        true
    }

    /// Begins the call that the last kernel asks for, all of whose arguments are values in place, if
    /// all else is as it mostly is.
    #[inline(always)]
    fn try_call(&mut self, program: &'f LoadedProgram, scratch: &Scratch) -> bool {
        let callee = scratch.callee;
        let Some(function) = callee.and_then(|callee| callee.own_index(program)) else {
            return false;
        };
        let topology = program.topology(function);
        let (from, record) = self.record();
        let arguments = &record.operands()[scratch.n_taken as usize..];
        let sequence = topology.sequence();
        let n_slots = sequence.n_slots();
        let is_usual = route::follows_in_order(topology)
            && sequence.n_arguments() == arguments.len()
            && self.depth() < self.max_levels
            && self.has_room(n_slots);
        if !is_usual {
            return false;
        }
        self.callers.push(self.top);
        let start = self.chunk.reserve(n_slots);
        self.top = InlineFrame {
            topology,
            slots: start,
            next: 0,
            is_first_of_chunk: false,
            kept: Retained::Nothing,
        };
        self.state = State::Settled;
        // SAFETY: so many slots are the new level's (S1).
        let to = unsafe { Slots::new(start) };
        for (argument, register) in (0..).zip(arguments) {
            // SAFETY: filled, as all operands of a kernel that was started, and left to us.
            let value = unsafe { from.peek(*register) };
            // SAFETY: the slots are new, and the first are the arguments'; the status says that it is
            // a value in place.
            unsafe { to.copy(argument, value) };
        }
        true
    }

    /// Whether a call of so many slots can begin without asking for memory.
    #[inline(always)]
    fn has_room(&self, n_slots: usize) -> bool {
        self.callers.len() < self.callers.capacity() && self.chunk.n_left() >= n_slots
    }

    /// Ends the topmost call, whose kernels have all run, with its results for those of the kernel
    /// below that has made it, if all is as it mostly is.
    #[inline(always)]
    fn try_return(&mut self) -> bool {
        let level = self.top;
        if level.kept != Retained::Nothing {
            return false;
        }
        let Some(caller) = self.callers.last() else {
            return false;
        };
        let results = level.topology.sequence().results();
        let outputs = caller.topology.sequence().record(caller.next - 1).outputs();
        if outputs.len() != results.len() {
            return false;
        }
        // SAFETY: S1.
        let from = unsafe { Slots::new(level.slots) };
        // SAFETY: S1.
        let to = unsafe { Slots::new(caller.slots) };
        for (register, output) in results.iter().zip(outputs) {
            // SAFETY: all kernels have settled results (S2), of which none was taken.
            let result = unsafe { from.peek(*register) };
            if result.is_counted() {
                return false;
            }
            // SAFETY: as above. The results of the caller's kernel are not settled, so nobody reads
            // them (S4), and they may be put again.
            unsafe { to.copy(output.register, result) };
        }
        self.drop_top();
        self.state = State::Settled;
        true
    }

    fn record(&self) -> (Slots<'f>, Record<'f>) {
        let topology: &'f FunctionPlan = self.top.topology;
        // SAFETY: S1.
        let slots = unsafe { Slots::new(self.top.slots) };
        (slots, topology.sequence().record(self.top.next - 1))
    }

    /// The number of results of the last kernel.
    pub(super) fn n_results(&self) -> usize {
        self.record().1.n_results() as usize
    }

    /// The number of results of the kernel that has made the topmost call, if any has.
    pub(super) fn n_results_of_caller(&self) -> Option<usize> {
        let caller = self.callers.last()?;
        let record = caller.topology.sequence().record(caller.next - 1);
        Some(record.n_results() as usize)
    }

    /// Takes the operands that the last kernel has left.
    pub(super) fn take_left(&mut self, list: &mut Vec<AnyAsyncValue>) {
        let State::Left(first) = self.state else {
            return;
        };
        self.state = State::Put(0);
        let (slots, record) = self.record();
        for register in &record.operands()[first as usize..] {
            // SAFETY: filled, as all operands of a kernel that was started, and left to us; the state
            // makes this the only time.
            list.push(unsafe { slots.take(*register) });
        }
    }

    /// Gives the last kernel the results that it did not put.
    pub(super) fn put_rest(&mut self, mut values: impl FnMut() -> AnyAsyncValue) {
        let State::Put(n_put) = self.state else {
            unreachable!("its results are not settled");
        };
        let (slots, record) = self.record();
        for output in record.outputs().iter().skip(n_put as usize) {
            // SAFETY: the results are not settled, so nobody reads these slots.
            unsafe { slots.put(output.register, values()) };
        }
        self.state = State::Put(record.n_results());
    }

    /// Whether the results of the last kernel, all of which were put, are there.
    pub(super) fn is_put_settled(&self) -> bool {
        let (slots, record) = self.record();
        assert!(
            self.state == State::Put(record.n_results()),
            "all results are put"
        );
        record.outputs().iter().all(|output| {
            // SAFETY: put before, with a reference that nobody has taken.
            unsafe { slots.peek(output.register) }.is_settled()
        })
    }

    /// Ends the only call, all results of whose last kernel were put: gives what its kernels have made.
    #[cold]
    pub(super) fn leave(&mut self) -> Box<RemainingCall> {
        let (slots, record) = self.record();
        assert!(
            self.state == State::Put(record.n_results()) && self.callers.is_empty(),
            "all results of the only call are put"
        );
        self.state = State::Over;
        let (topology, next) = (self.top.topology, self.top.next);
        let sequence = topology.sequence();
        let mut held: Vec<AnyAsyncValue> = Vec::new();
        held.resize_with(sequence.n_slots(), AnyAsyncValue::empty);
        let is_new = |slot: &u32| {
            record
                .outputs()
                .iter()
                .any(|output| output.register == *slot)
        };
        for slot in sequence
            .left_at(next)
            .into_iter()
            .filter(|slot| !is_new(slot))
        {
            // SAFETY: filled (S2), and taken once for each reference. One is kept.
            held[slot as usize] = unsafe { slots.take(slot) };
        }
        for output in record.outputs() {
            // SAFETY: put with one reference.
            held[output.register as usize] = unsafe { slots.take(output.register) };
        }
        // What lies in a slot is of the last kernel that has filled it.
        let mut taken =
            |register: u32| std::mem::replace(&mut held[register as usize], AnyAsyncValue::empty());
        let kernels = (0..next).rev();
        let outputs = kernels.flat_map(|kernel| sequence.record(kernel).outputs().iter().rev());
        let mut results: Vec<AnyAsyncValue> =
            outputs.map(|output| taken(output.register)).collect();
        results.reverse();
        let arguments = sequence.arguments().outputs().iter();
        Box::new(RemainingCall {
            number: self.number,
            n_kernels: next,
            arguments: arguments.map(|output| taken(output.register)).collect(),
            results,
        })
    }

    /// Goes through the results of the last kernel, all of which were put, each with one reference: what
    /// `finish` makes of them is what their readers get.
    pub(super) fn settle(&mut self, mut finish: impl FnMut(AnyAsyncValue) -> AnyAsyncValue) {
        let (slots, record) = self.record();
        assert!(
            self.state == State::Put(record.n_results()),
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
        self.state = State::Settled;
    }

    /// Appends the results of the topmost call, whose kernels have all run, to `results`.
    #[cfg_attr(not(tfrt_for_size), inline)]
    pub(super) fn take_results(&mut self, results: &mut Vec<AnyAsyncValue>) {
        let sequence = self.top.topology.sequence();
        assert!(
            self.state == State::Settled && self.top.next as usize == sequence.n_kernels(),
            "all kernels have run"
        );
        // SAFETY: S1.
        let slots = unsafe { Slots::new(self.top.slots) };
        self.state = State::Over;
        // SAFETY: all kernels have settled results (S2), with a reference for each return, of
        // which this list has one entry each; the state makes this the only time.
        let take = |register: &u32| unsafe { slots.take(*register) };
        results.extend(sequence.results().iter().map(take));
    }

    /// Ends the topmost call, whose results were taken, and which another has made.
    pub(super) fn pop(&mut self) {
        assert!(self.state == State::Over, "its results were taken");
        self.drop_top();
    }

    /// Begins the topmost call again, whose results were taken, with other arguments, and leaves the
    /// list empty; if these are as many as it takes, and values in place.
    #[inline]
    pub(super) fn restart(&mut self, arguments: &mut Vec<AnyAsyncValue>) -> bool {
        assert!(self.state == State::Over, "its results were taken");
        if arguments.len() != self.top.topology.sequence().n_arguments() {
            return false;
        }
        // SAFETY: S1.
        let slots = unsafe { Slots::new(self.top.slots) };
        // SAFETY: nothing is left in these slots, the first of which are the arguments'.
        if !unsafe { move_in_place(slots, arguments) } {
            return false;
        }
        self.state = State::Settled;
        self.top.next = 0;
        true
    }

    /// Ends the topmost call, whose kernels have all run, with its results put as those of the kernel
    /// of the call below that made it. That kernel's results are not settled by it.
    ///
    /// The numbers of results are equal, and there is a call below.
    pub(super) fn pop_to_caller(&mut self) {
        let caller = *self.callers.last().expect("there is a call below");
        let sequence = self.top.topology.sequence();
        let record = caller.topology.sequence().record(caller.next - 1);
        let results = sequence.results();
        assert!(
            self.state == State::Settled && self.top.next as usize == sequence.n_kernels(),
            "all kernels have run"
        );
        assert!(
            results.len() == record.outputs().len(),
            "the numbers are equal"
        );
        // SAFETY: S1.
        let from = unsafe { Slots::new(self.top.slots) };
        // SAFETY: S1.
        let to = unsafe { Slots::new(caller.slots) };
        for (register, output) in results.iter().zip(record.outputs()) {
            // SAFETY: as in `take_results`.
            let value = unsafe { from.take(*register) };
            // SAFETY: the results of the caller's kernel are not settled, so nobody reads them (S4).
            unsafe { to.put(output.register, value) };
        }
        self.drop_top();
        self.state = State::Put(record.n_results());
    }

    /// Ends the topmost call before its time: nothing of it is left. The results of the last kernel
    /// are settled. `false` if it was the outermost.
    #[cold]
    pub(super) fn abandon(&mut self) -> bool {
        assert!(self.state == State::Settled, "nothing is half done");
        self.state = State::Over;
        let InlineFrame {
            topology,
            slots,
            next,
            ..
        } = self.top;
        let sequence = topology.sequence();
        // SAFETY: S1.
        let slots = unsafe { Slots::new(slots) };
        for slot in sequence.left_at(next) {
            // SAFETY: filled (S2); the kernels were not started, and the results not taken.
            drop(unsafe { slots.take(slot) });
        }
        !self.callers.is_empty() && {
            self.drop_top();
            true
        }
    }

    /// Ends the topmost call, in whose slots nothing is left. There is a call below.
    fn drop_top(&mut self) {
        let caller = self.callers.pop().expect("there is a call below");
        let level = std::mem::replace(&mut self.top, caller);
        self.state = State::Put(0);
        self.chunk.n_used -= level.topology.sequence().n_slots();
        if level.is_first_of_chunk {
            self.shrink();
        }
    }

    /// Goes back to the chunk before, unless that is no better.
    #[cold]
    fn shrink(&mut self) {
        if self.more.len() > 1
            && let Some(before) = self.more.pop()
        {
            let chunk = std::mem::replace(&mut self.chunk, before);
            let spare = std::mem::replace(&mut self.more[0], chunk);
            spare.free(&**self.allocator);
        }
    }

    /// Gives back the memory of the chunks.
    #[cold]
    fn free_chunks(&mut self) {
        for chunk in self.more.iter().chain([&self.chunk]) {
            chunk.free(&**self.allocator);
        }
    }
}

/// Moves values to the first slots if all are values in place, and leaves the list empty then.
///
/// # Safety
///
/// There are so many slots, in which nothing is left, and nobody else uses them.
#[inline(always)]
unsafe fn move_in_place(slots: Slots<'_>, values: &mut Vec<AnyAsyncValue>) -> bool {
    for (register, value) in (0..).zip(&*values) {
        if value.is_counted() {
            return false;
        }
        // SAFETY: the caller says so.
        unsafe { slots.copy(register, value) };
    }
    // SAFETY: no value owns anything.
    unsafe { values.set_len(0) };
    true
}

/// Moves the arguments of a call to its slots, each with a reference for each of its readers, and leaves the list empty.
///
/// # Safety
///
/// The slots are those of the sequence, nothing is left in them, and nobody else uses them.
#[cfg_attr(not(tfrt_for_size), inline(never))]
unsafe fn move_arguments(
    slots: Slots<'_>,
    sequence: &InlinePlan,
    arguments: &mut Vec<AnyAsyncValue>,
) {
    let outputs = sequence.arguments().outputs();
    for (output, value) in outputs.iter().zip(arguments.drain(..)) {
        match output.n_references() {
            0 => drop(value),
            n => {
                value.retain(n as usize - 1);
                // SAFETY: the caller says so; the sequence says that the register exists.
                unsafe { slots.put(output.register, value) };
            }
        }
    }
}

/// The kernel of the topmost call that runs next. It is written to the level when its kernels run no
/// more, be it for a panic: until then it stays where the processor finds it.
struct At<'s> {
    next: usize,
    level: &'s mut u32,
}

impl<'s> At<'s> {
    #[inline(always)]
    fn new(level: &'s mut u32) -> Self {
        At {
            next: *level as usize,
            level,
        }
    }
}

impl Drop for At<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.level = self.next as u32;
    }
}

impl Drop for Stack<'_> {
    /// A panic of our own may leave levels: what they hold is lost, but not their memory.
    #[inline]
    fn drop(&mut self) {
        // The first chunk is not ours.
        if !self.more.is_empty() {
            self.free_chunks();
        }
    }
}
