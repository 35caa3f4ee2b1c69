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

/// How many words stand before the operands in a record.
const HEAD: usize = 4;
/// More attributes, or functions, of one kernel don't fit its record.
const MAX_ATTRIBUTES: usize = u16::MAX as usize;

const _: () = assert!(size_of::<Output>() == 8 && align_of::<Output>() == 4);

/// What a kernel takes and gives, in consecutive words: its code; the numbers of its operands and
/// results; those of its attributes and functions, in half a word each; the operands' registers;
/// for each result an [`Output`]; the attributes' offsets; the functions' indexes.
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
}

/// The records of a function's kernels.
#[derive(Debug)]
pub(crate) struct Records {
    words: Box<[u32]>,
    // Invariant: a record starts at each of these.
    starts: Box<[u32]>,
}

impl Records {
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Record<'_> {
        let start = self.starts[index as usize] as usize;
        // SAFETY: the invariant of `starts`.
        let start = unsafe { NonNull::from(&*self.words).cast::<u32>().add(start) };
        Record {
            start,
            _words: PhantomData,
        }
    }
}

/// Writes records.
pub(crate) struct RecordWriter {
    words: Vec<u32>,
    starts: Vec<u32>,
}

impl RecordWriter {
    pub(crate) fn with_capacity(n_words: usize, n_records: usize) -> Self {
        RecordWriter {
            words: Vec::with_capacity(n_words),
            starts: Vec::with_capacity(n_records),
        }
    }

    /// Appends a record; `None` if it would not fit.
    pub(crate) fn write(
        &mut self,
        code: u32,
        operands: &[u32],
        outputs: impl ExactSizeIterator<Item = Output>,
        attributes: &[u32],
        functions: &[u32],
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
        self.starts.push(start);
        Some(())
    }

    pub(crate) fn finish(self) -> Records {
        Records {
            words: self.words.into(),
            starts: self.starts.into(),
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
pub(crate) struct Cursor<'f> {
    slots: Slots<'f>,
    record: Record<'f>,
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
            n_taken: 0,
            n_put: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn record(&self) -> Record<'f> {
        self.record
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
        self.peek_at(self.n_taken)
    }

    /// Looks at an operand that was not taken.
    #[inline(always)]
    pub(crate) fn peek_at(&self, index: u32) -> Option<&AnyAsyncValue> {
        assert!(index >= self.n_taken, "what was taken is gone");
        let register = *self.record.operands().get(index as usize)?;
        // SAFETY: the activation's operands are filled, and this one was not taken.
        Some(unsafe { self.slots.peek(register) })
    }

    /// Takes the next operand.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<AnyAsyncValue> {
        let register = *self.record.operands().get(self.n_taken as usize)?;
        self.n_taken += 1;
        // SAFETY: the activation's operands are filled, and `n_taken` makes this the only time.
        Some(unsafe { self.slots.take(register) })
    }

    /// Puts the next result; gives the value back if there is none left.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: AnyAsyncValue) -> Result<(), AnyAsyncValue> {
        let Some(output) = self.record.outputs().get(self.n_put as usize) else {
            return Err(value);
        };
        self.n_put += 1;
        // SAFETY: the activation has the right to its results, and `n_put` makes this the only
        // time.
        unsafe { self.slots.put(output.register, value) };
        Ok(())
    }

    /// Takes back the results that were put.
    #[cold]
    pub(crate) fn withdraw(&mut self) {
        for output in &self.record.outputs()[..std::mem::take(&mut self.n_put) as usize] {
            // SAFETY: put before by this run, which has not ended, as one reference.
            drop(unsafe { self.slots.take(output.register) });
        }
    }

    #[cold]
    fn release(&mut self) {
        while self.take().is_some() {}
    }
}

impl Drop for Cursor<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.n_taken < self.record.n_operands() {
            self.release();
        }
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
        let mut writer = RecordWriter::with_capacity(0, 1);
        let written = writer.write(
            record.code(),
            &registers,
            outputs.into_iter(),
            record.attributes(),
            record.functions(),
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

    /// Runs the kernel; `run` says how many results it has put, which are given back.
    pub(crate) fn run(self, run: impl FnOnce(Activation<'_>) -> u32) -> Vec<AnyAsyncValue> {
        // SAFETY: these are the slots of the record's registers.
        let slots = unsafe { Slots::new(NonNull::from(&*self.slots).cast()) };
        let record = self.records.get(0);
        // SAFETY: the operands were filled by `new`, once each; `self` is used up by this run.
        let activation = unsafe { Activation::new(slots, record) };
        let n_put = run(activation);
        let put = record.outputs()[..n_put as usize].iter();
        // SAFETY: put by the run, as one reference.
        put.map(|output| unsafe { slots.take(output.register) })
            .collect()
    }
}
