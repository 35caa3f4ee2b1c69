//! The slots of one call, and a kernel's way through them.
//!
//! An [`Activation`] is the right to one run of a kernel, of which a [`Record`] tells: to take each of
//! its operands once, and to put each of its results once. It is two pointers, so that calling a
//! kernel costs no more than calling a function with three arguments, and a [`Cursor`] made of it in
//! the kernel's own entry disappears into constants.
//!
//! # Invariants
//!
//! * I2. Registers of a record are below the number of slots that an activation pairs it with
//!   (the shape checks registers; the caller of [`Activation::new`] promises the pair).
//! * I3. A slot is filled once, with one reference for each of its readers. Each reader copies the
//!   slot bit by bit and so takes its own reference.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use tfrt_async::AnyAsyncValue;
use tfrt_async::sync::UnsafeCell;

use super::plan::dataflow::Output;
use super::plan::records::{Record, RecordWriter, Records};

/// The memory of one register.
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
        // SAFETY: filled, and written no more.
        let words = slot.with(|slot| unsafe { read_words(slot.cast()) });
        // SAFETY: these are the bytes of a value; the copy stands for the reference that the caller
        // owns.
        unsafe { std::mem::transmute::<Words, AnyAsyncValue>(words) }
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
        // SAFETY: it is a value.
        let words = unsafe { read_words(std::ptr::from_ref(value).cast()) };
        // SAFETY: nobody else uses the slot, and the value owns nothing.
        slot.with_mut(|slot| unsafe { slot.cast::<Words>().write(words) });
    }
}

/// Reads a value word by word, as kernels write values: a processor that is asked for two words at a
/// time, of which one was just written, waits until that has left for the cache.
///
/// # Safety
///
/// A value lies there.
#[inline(always)]
unsafe fn read_words(value: *const Words) -> Words {
    let word = |index| {
        // SAFETY: inside of the value.
        let word = unsafe { value.cast::<Word>().add(index) };
        // SAFETY: the caller says so. What is volatile is not read together with others.
        unsafe { word.read_volatile() }
    };
    [word(0), word(1), word(2)]
}

/// A part of a value, of which nothing is known.
type Word = MaybeUninit<*const ()>;

/// A value, word by word.
type Words = [Word; 3];

const _: () = assert!(
    size_of::<AnyAsyncValue>() == size_of::<Words>()
        && align_of::<AnyAsyncValue>() >= align_of::<Words>()
);

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

    #[inline(always)]
    pub(crate) fn record(&self) -> Record<'f> {
        self.record
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
            // SAFETY: the invariant.
            let operands = unsafe { self.record.operands_of(self.n_operands) };
            operands[index as usize]
        })
    }

    #[inline(always)]
    fn outputs(&self) -> &'f [Output] {
        // SAFETY: the invariant.
        unsafe { self.record.outputs_of(self.n_operands, self.n_results) }
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

    /// Tells whether the operands from `first` on, none of which was taken, are values in place.
    #[inline(always)]
    pub(crate) fn are_in_place(&self, first: u32) -> bool {
        assert!(first >= self.n_taken, "what was taken is gone");
        (first..self.n_operands).all(|index| {
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

    /// Counts the operands below this one as taken: they are lost if they are counted.
    #[inline(always)]
    pub(crate) fn forget_operands_below(&mut self, next: u32) {
        self.n_taken = self.n_taken.max(next.min(self.n_operands));
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
    let left = left.skip(n_taken as usize);
    let look = |(index, register): (u32, &u32)| {
        // SAFETY: the caller says so.
        let operand = unsafe { slots.peek(*register) };
        look(index, operand)
    };
    left.rev().find_map(look)
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
pub(crate) struct BorrowedOperands {
    slots: Box<[Slot]>,
    records: Records,
}

impl BorrowedOperands {
    /// Prepares a run of a kernel with other operands than its record names.
    pub(crate) fn new(record: Record<'_>, operands: Vec<AnyAsyncValue>) -> BorrowedOperands {
        let registers: Vec<u32> = (0..operands.len() as u32).collect();
        let outputs = (registers.len() as u32..).take(record.n_results() as usize);
        let outputs: Vec<Output> = outputs.map(Output::alone).collect();
        let n_slots = registers.len() + outputs.len();
        let mut writer = RecordWriter::new(0, 1);
        let written = writer.write(
            record.entrance(),
            &registers,
            &outputs,
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
        BorrowedOperands {
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

/// The values that a run [`BorrowedOperands`] has left.
pub(crate) enum Outcome {
    /// So many results.
    Put(u32),
    /// Operands from this one on.
    Left(u32),
}
