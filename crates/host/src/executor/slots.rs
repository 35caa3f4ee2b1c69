//! The slots of one call, the records of its kernels, and a kernel's way through both.
//!
//! A [`Record`] is what a run reads of a kernel: its code, the registers of its operands and
//! results, its attributes and functions, as consecutive words. An [`Activation`] is the right to
//! one run of a kernel: to take each of its operands once, and to put each of its results once. It
//! is two pointers, so that calling a kernel costs no more than calling a function with three
//! arguments, and a [`Cursor`] made of it in the kernel's own entry disappears into constants.
//!
//! # Invariants
//!
//! * I1. A record is written by [`RecordWriter`] only, whole; nothing changes it.
//! * I2. Registers of a record are below the number of slots that an activation pairs it with
//!   (the shape checks registers; the caller of [`Activation::new`] promises the pair).
//! * I3. A slot is filled once, with one reference for each of its readers. Each reader copies the
//!   slot bit by bit and so takes its own reference.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use tfrt_async::AnyAsyncValue;
use tfrt_async::sync::UnsafeCell;

use super::shape::Output;

/// What a register is kept in.
pub(crate) type Slot = UnsafeCell<MaybeUninit<AnyAsyncValue>>;

/// The slots of one call. Which of them are filled, and who may touch them, its holder knows.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'f> {
    start: NonNull<Slot>,
    _slots: PhantomData<&'f Slot>,
}

impl Slots<'_> {
    /// # Safety
    ///
    /// As many slots as will be asked for start there, and live for `'f`.
    #[inline(always)]
    pub(crate) unsafe fn new(start: NonNull<Slot>) -> Self {
        Slots {
            start,
            _slots: PhantomData,
        }
    }

    /// # Safety
    ///
    /// There is a slot of that number.
    #[inline(always)]
    unsafe fn at(&self, register: u32) -> &Slot {
        // SAFETY: the caller says that it lies inside.
        let slot = unsafe { self.start.add(register as usize) };
        // SAFETY: slots live as long as `self`, and are shared only through their cells.
        unsafe { slot.as_ref() }
    }

    /// Looks at a filled slot.
    ///
    /// # Safety
    ///
    /// There is a slot of that number; it was filled, which happened before; and somebody's
    /// reference to what it holds is not taken while the result is used.
    #[inline(always)]
    pub(crate) unsafe fn peek(&self, register: u32) -> &AnyAsyncValue {
        // SAFETY: the caller says so.
        let slot = unsafe { self.at(register) };
        slot.with(|slot| {
            // SAFETY: filled, and written no more.
            let slot = unsafe { &*slot };
            // SAFETY: filled.
            unsafe { slot.assume_init_ref() }
        })
    }

    /// Copies a filled slot, taking over one of its references.
    ///
    /// # Safety
    ///
    /// There is a slot of that number; it was filled, which happened before; and the caller owns a
    /// reference that was not taken before.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, register: u32) -> AnyAsyncValue {
        // SAFETY: the caller says so.
        let slot = unsafe { self.at(register) };
        slot.with(|slot| {
            // SAFETY: filled, and written no more.
            let slot = unsafe { &*slot };
            // SAFETY: filled; the copy stands for the reference that the caller owns.
            unsafe { slot.assume_init_read() }
        })
    }

    /// Fills a slot with `value`, which counts as one reference.
    ///
    /// # Safety
    ///
    /// There is a slot of that number, which nobody reads or writes meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, register: u32, value: AnyAsyncValue) {
        // SAFETY: the caller says so.
        let slot = unsafe { self.at(register) };
        slot.with_mut(|slot| {
            // SAFETY: nobody else uses it.
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
    }
}

impl Slots<'_> {
    /// Fills a slot with a copy of a value that is not counted.
    ///
    /// # Safety
    ///
    /// As for [`Slots::put`]; and the value is not counted.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, register: u32, value: &AnyAsyncValue) {
        // SAFETY: the caller says so.
        let slot = unsafe { self.at(register) };
        let from = std::ptr::from_ref(value).cast::<Word>();
        slot.with_mut(|to| {
            for word in 0..size_of::<AnyAsyncValue>() / size_of::<Word>() {
                // SAFETY: inside of the value.
                let from = unsafe { from.add(word) };
                // SAFETY: it may be read, and owns nothing. Kernels write words: a processor that is
                // asked for two at a time waits until the last has left for the cache.
                let copy = unsafe { from.read_volatile() };
                // SAFETY: inside of the slot.
                let to = unsafe { to.cast::<Word>().add(word) };
                // SAFETY: nobody else uses it.
                unsafe { to.write(copy) };
            }
        });
    }
}

/// A part of a value, of which nothing is known.
type Word = MaybeUninit<*const ()>;

const _: () = assert!(
    size_of::<AnyAsyncValue>().is_multiple_of(size_of::<Word>())
        && align_of::<AnyAsyncValue>() >= align_of::<Word>()
);

/// How many words stand before the operands in a record.
const HEAD: usize = 4;
/// More attributes, or functions, of one kernel don't fit its record.
const MAX_ATTRIBUTES: usize = u16::MAX as usize;

const _: () = assert!(size_of::<Output>() == 8 && align_of::<Output>() == 4);

/// What a kernel takes and gives, in consecutive words: its code; the numbers of its operands and
/// results; those of its attributes and functions, in half a word each; the operands' registers;
/// for each result an [`Output`]; the attributes' offsets; the functions' indexes; for each result its
/// references once more, and the list of its users ([`Users`]).
#[derive(Clone, Copy)]
pub(crate) struct Record<'s> {
    // Invariant: I1.
    start: NonNull<u32>,
    _words: PhantomData<&'s [u32]>,
}

impl<'s> Record<'s> {
    #[inline(always)]
    fn word(self, index: usize) -> u32 {
        debug_assert!(index < HEAD);
        // SAFETY: the head of a record lies inside of it.
        let word = unsafe { self.start.add(index) };
        // SAFETY: written before, and no more.
        unsafe { word.read() }
    }

    /// `len` elements, `offset` words into the record.
    ///
    /// # Safety
    ///
    /// The writer has put them there.
    #[inline(always)]
    unsafe fn part<T>(self, offset: usize, len: usize) -> &'s [T] {
        // SAFETY: inside the record, by the caller's promise.
        let start = unsafe { self.start.add(offset) };
        // SAFETY: written before, and no more, and lives for `'s`.
        unsafe { std::slice::from_raw_parts(start.cast::<T>().as_ptr(), len) }
    }

    /// The number of the kernel's code.
    #[inline(always)]
    pub(crate) fn code(self) -> u32 {
        self.word(0)
    }

    #[inline(always)]
    pub(crate) fn n_operands(self) -> u32 {
        self.word(1)
    }

    #[inline(always)]
    pub(crate) fn n_results(self) -> u32 {
        self.word(2)
    }

    #[inline(always)]
    pub(crate) fn operands(self) -> &'s [u32] {
        // SAFETY: they follow the head.
        unsafe { self.part(HEAD, self.n_operands() as usize) }
    }

    #[inline(always)]
    pub(crate) fn outputs(self) -> &'s [Output] {
        let offset = HEAD + self.n_operands() as usize;
        // SAFETY: they follow the operands.
        unsafe { self.part(offset, self.n_results() as usize) }
    }

    #[inline(always)]
    fn after_outputs(self) -> usize {
        HEAD + self.n_operands() as usize + 2 * self.n_results() as usize
    }

    #[inline(always)]
    pub(crate) fn attributes(self) -> &'s [u32] {
        let n = self.word(3) as usize & MAX_ATTRIBUTES;
        // SAFETY: they follow the outputs.
        unsafe { self.part(self.after_outputs(), n) }
    }

    #[inline(always)]
    pub(crate) fn functions(self) -> &'s [u32] {
        let counts = self.word(3) as usize;
        let offset = self.after_outputs() + (counts & MAX_ATTRIBUTES);
        // SAFETY: they follow the attributes.
        unsafe { self.part(offset, counts >> 16) }
    }

    /// The outputs, by number: whether a forwarding value may stand for each, and all its users.
    #[inline(always)]
    pub(crate) fn counted_outputs(self) -> CountedOutputs<'s> {
        let counts = self.word(3) as usize;
        let n_attributes_and_functions = (counts & MAX_ATTRIBUTES) + (counts >> 16);
        CountedOutputs {
            record: self,
            offset: self.after_outputs() + n_attributes_and_functions,
            next: 0,
            n_results: self.n_results(),
        }
    }

    /// The outputs, each with its users.
    #[inline(always)]
    pub(crate) fn outputs_with_users(self) -> impl Iterator<Item = (Output, Users<'s>)> {
        let counts = self.word(3) as usize;
        let mut offset = self.after_outputs();
        if counts != 0 {
            offset += (counts & MAX_ATTRIBUTES) + (counts >> 16);
        }
        self.outputs().iter().map(move |output| {
            // SAFETY: the lists follow the functions, one for each output.
            let (users, n_words) = unsafe { Users::at(self, offset + 1) };
            offset += 1 + n_words;
            (*output, users)
        })
    }
}

/// See [`Record::counted_outputs`].
pub(crate) struct CountedOutputs<'s> {
    record: Record<'s>,
    // Invariant: the references and the list of output `next` begin so many words into the record, if
    // there is one.
    offset: usize,
    next: u32,
    n_results: u32,
}

impl<'s> Iterator for CountedOutputs<'s> {
    type Item = (u32, bool, &'s [u32]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.n_results {
            return None;
        }
        let index = self.next;
        self.next += 1;
        // SAFETY: the references, and the head of a list, are two words, for each output.
        let [references, head] = unsafe { self.record.part::<[u32; 2]>(self.offset, 1) }[0];
        let may_be_forwarded = Output::from_words([0, references]).may_be_forwarded();
        let has_early = (head >> 31) as usize;
        let n_users = (head & !Users::HAS_EARLY) as usize;
        let start = self.offset + 2 + has_early;
        // SAFETY: the users follow, perhaps after the number of the early ones.
        let users = unsafe { self.record.part::<u32>(start, n_users) };
        self.offset = start + n_users;
        Some((index, may_be_forwarded, users))
    }
}

/// The users of one register: those first that can do with a handle.
#[derive(Clone, Copy)]
pub(crate) struct Users<'s> {
    pub(crate) early: &'s [u32],
    pub(crate) late: &'s [u32],
}

impl<'s> Users<'s> {
    /// Marks the number of a list of which some users can do with a handle: their number follows.
    const HAS_EARLY: u32 = 1 << 31;

    /// Reads the list that begins so many words into `record`, and says how many words it takes.
    ///
    /// # Safety
    ///
    /// The writer has put a list there.
    #[inline(always)]
    unsafe fn at(record: Record<'s>, offset: usize) -> (Users<'s>, usize) {
        // SAFETY: a list has a head.
        let head = unsafe { record.part::<u32>(offset, 1) }[0];
        if head & Self::HAS_EARLY == 0 {
            // SAFETY: the users follow it.
            let late = unsafe { record.part(offset + 1, head as usize) };
            return (Users { early: &[], late }, 1 + head as usize);
        }
        let n_users = (head & !Self::HAS_EARLY) as usize;
        // SAFETY: the number of the early ones follows it.
        let n_early = unsafe { record.part::<u32>(offset + 1, 1) }[0] as usize;
        // SAFETY: the users follow that.
        let users = unsafe { record.part::<u32>(offset + 2, n_users) };
        let (early, late) = users.split_at(n_early);
        (Users { early, late }, 2 + n_users)
    }
}

/// The records of a function's kernels.
#[derive(Debug)]
pub(crate) struct Records {
    words: Box<[u32]>,
    // Invariant: a record starts at each of these.
    starts: Box<[u32]>,
    // Invariant: at each of these stand the references of the register of that number, and the list of
    // its users; or it is [`NOWHERE`].
    lists: Box<[u32]>,
}

/// Stands for the list of a register that is no output.
const NOWHERE: u32 = u32::MAX;

impl Records {
    /// The records from `first` on, with their numbers, but for the last.
    #[inline(always)]
    pub(crate) fn from(&self, first: u32) -> impl Iterator<Item = (u32, Record<'_>)> {
        let n_kernels = self.starts.len().saturating_sub(1);
        let first = (first as usize).min(n_kernels);
        let starts = &self.starts[first..n_kernels];
        let numbered = (first as u32..).zip(starts);
        numbered.map(|(index, start)| (index, self.at(*start)))
    }

    /// A register, seen from where it is filled, and its users.
    pub(crate) fn definition(&self, register: u32) -> (Output, Users<'_>) {
        let list = self.lists[register as usize];
        assert!(list != NOWHERE, "the register is some kernel's output");
        let words = self.at(0);
        // SAFETY: the invariant of `lists`.
        let references = unsafe { words.part::<u32>(list as usize, 1) }[0];
        // SAFETY: the list follows.
        let (users, _) = unsafe { Users::at(words, list as usize + 1) };
        (Output::from_words([register, references]), users)
    }

    /// The record of which a register is an output.
    pub(crate) fn producer(&self, register: u32) -> u32 {
        let list = self.lists[register as usize];
        assert!(list != NOWHERE, "the register is some kernel's output");
        // The list is part of the record, and records follow each other.
        self.starts.partition_point(|start| *start <= list) as u32 - 1
    }

    #[inline(always)]
    fn at(&self, start: u32) -> Record<'_> {
        // SAFETY: the invariant of `starts`, from where the callers have it.
        let start = unsafe {
            NonNull::from(&*self.words)
                .cast::<u32>()
                .add(start as usize)
        };
        Record {
            start,
            _words: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Record<'_> {
        self.at(self.starts[index as usize])
    }
}

/// Writes records.
pub(crate) struct RecordWriter {
    words: Vec<u32>,
    starts: Vec<u32>,
    lists: Box<[u32]>,
    /// Room for the users of one register.
    users: (Vec<u32>, Vec<u32>),
}

impl RecordWriter {
    pub(crate) fn new(n_words: usize, n_records: usize, n_registers: usize) -> Self {
        RecordWriter {
            words: Vec::with_capacity(n_words),
            starts: Vec::with_capacity(n_records),
            lists: vec![NOWHERE; n_registers].into(),
            users: Default::default(),
        }
    }

    /// Appends a record; `None` if it would not fit. `users` appends the early and the late users of
    /// each output to two lists; no output has a register that an earlier one had.
    pub(crate) fn write(
        &mut self,
        code: u32,
        operands: &[u32],
        outputs: impl ExactSizeIterator<Item = Output>,
        attributes: &[u32],
        functions: &[u32],
        mut users: impl FnMut(u32, &mut Vec<u32>, &mut Vec<u32>),
    ) -> Option<()> {
        let start = u32::try_from(self.words.len()).ok()?;
        if attributes.len() > MAX_ATTRIBUTES || functions.len() > MAX_ATTRIBUTES {
            return None;
        }
        let n_operands = u32::try_from(operands.len()).ok()?;
        let n_results = u32::try_from(outputs.len()).ok()?;
        let counts = attributes.len() as u32 | (functions.len() as u32) << 16;
        self.words.extend([code, n_operands, n_results, counts]);
        self.words.extend_from_slice(operands);
        let mut n_written = 0;
        for output in outputs.take(n_results as usize) {
            self.words.extend(output.words());
            n_written += 1;
        }
        assert!(n_written == n_results, "the iterator knows its length");
        self.words.extend_from_slice(attributes);
        self.words.extend_from_slice(functions);
        for index in 0..n_results {
            let output = 2 * index as usize + start as usize + HEAD + operands.len();
            let (register, references) = (self.words[output], self.words[output + 1]);
            self.lists[register as usize] = u32::try_from(self.words.len()).ok()?;
            self.words.push(references);
            let (mut early, mut late) = std::mem::take(&mut self.users);
            users(index, &mut early, &mut late);
            let n_users = u32::try_from(early.len() + late.len()).ok()?;
            if n_users & Users::HAS_EARLY != 0 {
                return None;
            }
            if early.is_empty() {
                self.words.push(n_users);
            } else {
                let n_early = early.len() as u32;
                self.words.extend([n_users | Users::HAS_EARLY, n_early]);
                self.words.append(&mut early);
            }
            self.words.append(&mut late);
            self.users = (early, late);
        }
        self.starts.push(start);
        Some(())
    }

    pub(crate) fn finish(self) -> Records {
        Records {
            words: self.words.into(),
            starts: self.starts.into(),
            lists: self.lists,
        }
    }
}

/// The right to one run of a kernel.
pub struct Activation<'f> {
    slots: Slots<'f>,
    record: Record<'f>,
}

impl<'f> Activation<'f> {
    /// # Safety
    ///
    /// The record is one of the shape whose registers the slots are. The kernel's operands are
    /// filled, which happened before, each with a reference for it that nobody else takes. Its
    /// results are not filled, and nobody else touches their slots before the run has ended.
    #[inline(always)]
    pub(crate) unsafe fn new(slots: Slots<'f>, record: Record<'f>) -> Self {
        Activation { slots, record }
    }
}

/// A run of a kernel: what it has taken and put. Operands that were not taken are released when
/// this is dropped.
///
/// What is rarely done is done by functions that take the parts one by one: then nothing keeps the
/// compiler from holding the cursor of a kernel's entry in constants and registers.
pub(crate) struct Cursor<'f> {
    slots: Slots<'f>,
    record: Record<'f>,
    // Invariant: those of the record. Here the compiler sees that they don't change.
    n_operands: u32,
    n_results: u32,
    // Invariant: at most the number of operands; those below were taken.
    n_taken: u32,
    // Invariant: at most the number of results; those below were put.
    n_put: u32,
}

impl<'f> Cursor<'f> {
    #[inline(always)]
    pub(crate) fn new(activation: Activation<'f>) -> Self {
        Cursor {
            slots: activation.slots,
            record: activation.record,
            n_operands: activation.record.n_operands(),
            n_results: activation.record.n_results(),
            n_taken: 0,
            n_put: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn record(&self) -> Record<'f> {
        self.record
    }

    #[inline(always)]
    pub(crate) fn n_operands(&self) -> u32 {
        self.n_operands
    }

    #[inline(always)]
    pub(crate) fn n_results(&self) -> u32 {
        self.n_results
    }

    #[inline(always)]
    fn operand(&self, index: u32) -> Option<u32> {
        (index < self.n_operands).then(|| {
            // SAFETY: they follow the head, as many as `n_operands` says.
            let operands = unsafe { self.record.part::<u32>(HEAD, self.n_operands as usize) };
            operands[index as usize]
        })
    }

    #[inline(always)]
    fn outputs(&self) -> &'f [Output] {
        let offset = HEAD + self.n_operands as usize;
        // SAFETY: they follow the operands, as many as `n_results` says.
        unsafe { self.record.part(offset, self.n_results as usize) }
    }

    #[inline(always)]
    pub(crate) fn n_taken(&self) -> u32 {
        self.n_taken
    }

    #[inline(always)]
    pub(crate) fn n_put(&self) -> u32 {
        self.n_put
    }

    /// Looks at the next operand.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<&AnyAsyncValue> {
        let register = self.operand(self.n_taken)?;
        // SAFETY: the activation's operands are filled, and this one was not taken.
        Some(unsafe { self.slots.peek(register) })
    }

    /// Looks at an operand of a kernel that has not taken any.
    #[inline(always)]
    pub(crate) fn peek_at(&self, index: u32) -> Option<&AnyAsyncValue> {
        assert!(self.n_taken == 0, "what was taken is gone");
        let register = self.operand(index)?;
        // SAFETY: the activation's operands are filled, and none was taken.
        Some(unsafe { self.slots.peek(register) })
    }

    /// Tells whether all operands that are left are values in place.
    #[inline(always)]
    pub(crate) fn are_left_in_place(&self) -> bool {
        (self.n_taken..self.n_operands).all(|index| {
            self.operand(index).is_some_and(|register| {
                // SAFETY: the activation's operands are filled, and this one was not taken.
                let operand = unsafe { self.slots.peek(register) };
                !operand.is_counted()
            })
        })
    }

    /// Leaves all operands that are left to whoever has made the activation, and says from which on.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> u32 {
        std::mem::replace(&mut self.n_taken, self.n_operands)
    }

    /// Counts all operands as taken: they are lost if they are counted.
    #[inline(always)]
    pub(crate) fn forget_operands(&mut self) {
        self.n_taken = self.n_operands;
    }

    /// Begins the run anew, if nothing was taken or put.
    #[inline(always)]
    pub(crate) fn into_activation(mut self) -> Activation<'f> {
        assert!(self.n_taken == 0 && self.n_put == 0, "it has not begun");
        self.forget_operands();
        Activation {
            slots: self.slots,
            record: self.record,
        }
    }

    /// Takes the next operand.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<AnyAsyncValue> {
        let register = self.operand(self.n_taken)?;
        self.n_taken += 1;
        // SAFETY: the activation's operands are filled, and `n_taken` makes this the only time.
        Some(unsafe { self.slots.take(register) })
    }

    /// Finds the last of the operands not taken that `look` is content with.
    #[inline(always)]
    pub(crate) fn find_last<R>(
        &self,
        look: impl FnMut(u32, &AnyAsyncValue) -> Option<R>,
    ) -> Option<R> {
        // SAFETY: the activation's operands are filled, and these were not taken.
        unsafe { find_last(self.slots, self.record, self.n_taken, look) }
    }

    /// Puts the next result; gives the value back if there is none left.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: AnyAsyncValue) -> Result<(), AnyAsyncValue> {
        let Some(output) = self.outputs().get(self.n_put as usize) else {
            return Err(value);
        };
        self.n_put += 1;
        // SAFETY: the activation has the right to its results, and `n_put` makes this the only
        // time.
        unsafe { self.slots.put(output.register, value) };
        Ok(())
    }

    /// Moves the rights that are left to a new cursor: this one has nothing to take any more.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self) -> Cursor<'f> {
        let n_taken = std::mem::replace(&mut self.n_taken, self.n_operands);
        let n_put = std::mem::replace(&mut self.n_put, self.n_results);
        Cursor {
            slots: self.slots,
            record: self.record,
            n_operands: self.n_operands,
            n_results: self.n_results,
            n_taken,
            n_put,
        }
    }

    /// Takes back the results that were put.
    #[inline(always)]
    pub(crate) fn withdraw(&mut self) {
        let n_put = std::mem::take(&mut self.n_put);
        // SAFETY: so many were put by this run, which has not ended.
        unsafe { withdraw(self.slots, self.record, n_put) };
    }
}

impl Drop for Cursor<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.n_taken < self.n_operands {
            // SAFETY: these were not taken, and are not after this.
            unsafe { release(self.slots, self.record, self.n_taken) };
        }
    }
}

/// # Safety
///
/// The operands from `n_taken` on are filled, and stay so.
#[inline(never)]
unsafe fn find_last<R>(
    slots: Slots<'_>,
    record: Record<'_>,
    n_taken: u32,
    mut look: impl FnMut(u32, &AnyAsyncValue) -> Option<R>,
) -> Option<R> {
    let left = (0..record.n_operands()).zip(record.operands());
    let mut left = left.skip(n_taken as usize).rev();
    left.find_map(|(index, register)| {
        // SAFETY: the caller says so.
        let operand = unsafe { slots.peek(*register) };
        look(index, operand)
    })
}

/// # Safety
///
/// The caller has the right to take the operands from `n_taken` on.
#[inline(never)]
unsafe fn release(slots: Slots<'_>, record: Record<'_>, n_taken: u32) {
    for register in &record.operands()[n_taken as usize..] {
        // SAFETY: the caller says so.
        drop(unsafe { slots.take(*register) });
    }
}

/// # Safety
///
/// So many results are put, and nobody else reads them.
#[cold]
unsafe fn withdraw(slots: Slots<'_>, record: Record<'_>, n_put: u32) {
    for output in &record.outputs()[..n_put as usize] {
        // SAFETY: the caller says so.
        drop(unsafe { slots.take(output.register) });
    }
}

/// A run of a kernel beside the slots of its call: its operands are handed to it.
pub(crate) struct Aside {
    slots: Box<[Slot]>,
    records: Records,
}

impl Aside {
    /// Prepares a run of a kernel with other operands than its record names.
    pub(crate) fn new(record: Record<'_>, operands: Vec<AnyAsyncValue>) -> Aside {
        let registers: Vec<u32> = (0..operands.len() as u32).collect();
        let outputs = (registers.len() as u32..).take(record.n_results() as usize);
        let outputs: Vec<Output> = outputs.map(Output::alone).collect();
        let n_slots = registers.len() + outputs.len();
        let mut writer = RecordWriter::new(0, 1, n_slots);
        let written = writer.write(
            record.code(),
            &registers,
            outputs.into_iter(),
            record.attributes(),
            record.functions(),
            |_, _, _| {},
        );
        written.expect("the record that it is made of was written");
        let empty = std::iter::repeat_with(|| UnsafeCell::new(MaybeUninit::uninit()));
        let slots: Box<[Slot]> = empty.take(n_slots).collect();
        for (slot, operand) in slots.iter().zip(operands) {
            slot.with_mut(|slot| {
                // SAFETY: the slots are new and ours.
                unsafe { &mut *slot }.write(operand);
            });
        }
        Aside {
            slots,
            records: writer.finish(),
        }
    }

    /// Runs the kernel; `run` says what it has put, or left, which is given back.
    pub(crate) fn run(self, run: impl FnOnce(Activation<'_>) -> Outcome) -> Vec<AnyAsyncValue> {
        // SAFETY: these are the slots of the record's registers.
        let slots = unsafe { Slots::new(NonNull::from(&*self.slots).cast()) };
        let record = self.records.get(0);
        // SAFETY: the operands were filled by `new`, once each; `self` is used up by this run.
        let activation = unsafe { Activation::new(slots, record) };
        // SAFETY: put by the run, as one reference; or an operand that it has left.
        let take = |register: u32| unsafe { slots.take(register) };
        match run(activation) {
            Outcome::Put(n_put) => {
                let put = record.outputs()[..n_put as usize].iter();
                put.map(|output| take(output.register)).collect()
            }
            Outcome::Left(first) => {
                let left = record.operands()[first as usize..].iter();
                left.map(|register| take(*register)).collect()
            }
        }
    }
}

/// What a run [`Aside`] has left.
pub(crate) enum Outcome {
    /// So many results.
    Put(u32),
    /// Operands from this one on.
    Left(u32),
}
