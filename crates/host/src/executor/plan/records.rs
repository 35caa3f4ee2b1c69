//! The kernels of a function as a run reads them: a [`Record`] for each, as consecutive words.
//!
//! Records of kernels that are counted have the users of their outputs in front of them
//! ([`CountedRecord`]), so that both are found by one number. A run reads the users backwards, from the
//! record on:
//!
//! ```text
//! ... | end, last user ... first user | entrance, numbers, operands ... | end, ...
//! ```
//!
//! # Invariants
//!
//! * I1. A record is written by [`RecordWriter`] only, whole; nothing changes it.
//! * I4. In front of a counted record are its users, each a kernel's number below [`NO_USER`], and in
//!   front of them an end, which is not.

use std::hint::cold_path;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::dataflow::Output;

/// How many words stand before the operands in a record.
const HEAD: usize = 4;
/// More attributes, or functions, of one kernel don't fit its record.
const MAX_ATTRIBUTES: usize = u16::MAX as usize;

const _: () = assert!(size_of::<Output>() == 8 && align_of::<Output>() == 4);

/// A kernel's operands and results in consecutive words: its entrance; the numbers of its operands and
/// results; those of its attributes and functions, in half a word each; the operands' registers;
/// for each result an [`Output`]; the attributes' offsets; the functions' indexes.
#[derive(Clone, Copy)]
pub(crate) struct Record<'s> {
    // Invariant: I1.
    start: NonNull<u32>,
    _words: PhantomData<&'s [u32]>,
}

impl<'s> Record<'s> {
    /// # Safety
    ///
    /// A record starts there, so many words after the first of [`Records`] that live for `'s`.
    #[inline(always)]
    unsafe fn at(words: NonNull<u32>, start: u32) -> Record<'s> {
        Record {
            // SAFETY: the caller says that it lies inside.
            start: unsafe { words.add(start as usize) },
            _words: PhantomData,
        }
    }

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
        self.word(0) / 2
    }

    /// The number of the entry by which this use of the kernel is run.
    #[inline(always)]
    pub(crate) fn entrance(self) -> u32 {
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

    /// [`Self::operands`], for those who know how many there are.
    ///
    /// # Safety
    ///
    /// There are so many.
    #[inline(always)]
    pub(crate) unsafe fn operands_of(self, n_operands: u32) -> &'s [u32] {
        // SAFETY: they follow the head.
        unsafe { self.part(HEAD, n_operands as usize) }
    }

    #[inline(always)]
    pub(crate) fn outputs(self) -> &'s [Output] {
        // SAFETY: so many there are.
        unsafe { self.outputs_of(self.n_operands(), self.n_results()) }
    }

    /// [`Self::outputs`], for those who know how many operands and results there are.
    ///
    /// # Safety
    ///
    /// There are so many.
    #[inline(always)]
    pub(crate) unsafe fn outputs_of(self, n_operands: u32, n_results: u32) -> &'s [Output] {
        let offset = HEAD + n_operands as usize;
        // SAFETY: they follow the operands.
        unsafe { self.part(offset, n_results as usize) }
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

/// The users of one register: those first that can do with a handle.
#[derive(Clone, Copy)]
pub(crate) struct Users<'s> {
    /// The last comes first.
    backwards: &'s [u32],
    n_early: usize,
}

impl<'s> Users<'s> {
    pub(crate) fn all(self) -> impl Iterator<Item = u32> + use<'s> {
        self.backwards.iter().rev().copied()
    }

    pub(crate) fn has_early(self) -> bool {
        self.n_early > 0
    }

    /// Those that can do with a handle.
    pub(crate) fn early(self) -> impl Iterator<Item = u32> + use<'s> {
        self.all().take(self.n_early)
    }

    /// Those that need the value.
    pub(crate) fn late(self) -> impl Iterator<Item = u32> + use<'s> {
        self.all().skip(self.n_early)
    }
}

/// Numbers of kernels are smaller.
pub(crate) const NO_USER: u32 = (1 << 29) - 1;

/// A [`Record`] with the users of its outputs in front of it (I4).
#[derive(Clone, Copy)]
pub(crate) struct CountedRecord<'s>(Record<'s>);

impl<'s> CountedRecord<'s> {
    /// In front of the users of outputs for some of which a forwarding value may stand.
    const SPECIAL: u32 = u32::MAX;

    #[inline(always)]
    pub(crate) fn record(self) -> Record<'s> {
        self.0
    }

    /// Goes through the users of all outputs, in order; and tells whether a forwarding value may stand
    /// for some output.
    #[inline(always)]
    pub(crate) fn for_users(self, mut each: impl FnMut(u32)) -> bool {
        let mut place = self.0.start;
        loop {
            // SAFETY: I4, and the end was not met.
            place = unsafe { place.sub(1) };
            // SAFETY: written before, and no more.
            let user = unsafe { place.read() };
            if user >= NO_USER {
                return user == Self::SPECIAL;
            }
            each(user);
        }
    }
}

/// The records of kernels, by their numbers.
#[derive(Debug)]
pub(crate) struct Records {
    words: Box<[u32]>,
    // Invariant: a record starts at each of these.
    starts: Box<[u32]>,
}

impl Records {
    /// The first records, of which there are so many.
    #[inline(always)]
    pub(crate) fn first(&self, n_records: usize) -> FirstRecords<'_> {
        FirstRecords {
            words: self.words(),
            starts: &self.starts[..n_records],
        }
    }

    #[inline(always)]
    fn words(&self) -> NonNull<u32> {
        NonNull::from(&*self.words).cast()
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Record<'_> {
        // SAFETY: the invariant of `starts`.
        unsafe { Record::at(self.words(), self.starts[index as usize]) }
    }
}

/// Some of [`Records`], to be gone through in order.
#[derive(Clone, Copy)]
pub(crate) struct FirstRecords<'s> {
    words: NonNull<u32>,
    // Invariant: those of the records.
    starts: &'s [u32],
}

impl<'s> FirstRecords<'s> {
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<Record<'s>> {
        let start = self.starts.get(index)?;
        // SAFETY: the invariant of `Records::starts`.
        Some(unsafe { Record::at(self.words, *start) })
    }
}

/// [`Records`] with the users of all outputs.
#[derive(Debug)]
pub(crate) struct CountedRecords {
    // Invariant: I4 holds for each.
    records: Records,
    /// The counts of each register.
    abouts: Box<[About]>,
}

/// The counts of an output, which its record does not have.
#[derive(Clone, Copy, Debug)]
struct About {
    references: u32,
    n_users: u32,
    /// How many of them can do with a handle.
    n_early: u32,
    /// Where the users start in the words.
    first_user: u32,
    /// The record of which it is an output, or [`About::NOBODY`].
    producer: u32,
}

impl About {
    const NOBODY: u32 = u32::MAX;

    /// Of a register that is no output.
    const NOTHING: About = About {
        references: 0,
        n_users: 0,
        n_early: 0,
        first_user: 0,
        producer: Self::NOBODY,
    };
}

/// A way from record to record, which mostly follow each other.
///
/// It guesses the next. Whether the guess is right is a branch that the processor foretells, and so it
/// reads records before the counts that lead to them are known.
pub(crate) struct RecordWalk<'s> {
    words: NonNull<u32>,
    starts: &'s [u32],
    // Invariant: that of the record `number`, if there is one.
    start: NonNull<u32>,
    /// The number of the last record; or one that none follows.
    number: u32,
}

impl<'s> RecordWalk<'s> {
    /// # Safety
    ///
    /// There is a record of that number.
    #[inline(always)]
    pub(crate) unsafe fn go_to(&mut self, index: u32) -> CountedRecord<'s> {
        if index == self.number.wrapping_add(1) {
            // Not looked up by its number: that would be to wait for it.
            // SAFETY: the caller says that one follows.
            self.start = unsafe { self.start.add(1) };
        } else {
            cold_path();
            // Not a reference to it: from there no way would lead to those that follow.
            self.start = NonNull::from(&self.starts[index as usize..]).cast();
        }
        self.number = index;
        // SAFETY: one of `starts`, which live for `'s`.
        let start = unsafe { self.start.read() };
        // SAFETY: the invariant of `Records::starts`.
        CountedRecord(unsafe { Record::at(self.words, start) })
    }
}

impl CountedRecords {
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> CountedRecord<'_> {
        CountedRecord(self.records.get(index))
    }

    /// A way from record to record.
    pub(crate) fn walk(&self) -> RecordWalk<'_> {
        RecordWalk {
            words: self.records.words(),
            starts: &self.records.starts,
            start: NonNull::from(&*self.records.starts).cast(),
            number: u32::MAX - 1,
        }
    }

    /// A register, seen from where it is filled, and its users.
    pub(crate) fn definition(&self, register: u32) -> (Output, Users<'_>) {
        let about = self.abouts[register as usize];
        let users = Users {
            backwards: &self.records.words[about.first_user as usize..][..about.n_users as usize],
            n_early: about.n_early as usize,
        };
        (Output::from_words([register, about.references]), users)
    }

    /// The record of which a register is an output.
    pub(crate) fn producer(&self, register: u32) -> u32 {
        let producer = self.abouts[register as usize].producer;
        assert!(producer != About::NOBODY, "it is some kernel's output");
        producer
    }
}

/// Writes records.
pub(crate) struct RecordWriter {
    words: Vec<u32>,
    starts: Vec<u32>,
}

impl RecordWriter {
    pub(crate) fn new(n_words: usize, n_records: usize) -> Self {
        RecordWriter {
            words: Vec::with_capacity(n_words),
            starts: Vec::with_capacity(n_records),
        }
    }

    /// How many words a record takes.
    pub(crate) fn n_words(n_operands: usize, n_results: usize, n_constants: usize) -> usize {
        HEAD + n_operands + 2 * n_results + n_constants
    }

    /// Appends a record; `None` if it would not fit.
    pub(crate) fn write(
        &mut self,
        entrance: u32,
        operands: &[u32],
        outputs: &[Output],
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
        self.words.extend([entrance, n_operands, n_results, counts]);
        self.words.extend_from_slice(operands);
        self.words
            .extend(outputs.iter().flat_map(|output| output.words()));
        self.words.extend_from_slice(attributes);
        self.words.extend_from_slice(functions);
        self.starts.push(start);
        Some(())
    }

    /// Whether as many records, and words, were written as there was room for.
    pub(crate) fn is_full(&self) -> bool {
        let (words, starts) = (&self.words, &self.starts);
        words.len() == words.capacity() && starts.len() == starts.capacity()
    }

    pub(crate) fn finish(self) -> Records {
        Records {
            words: self.words.into(),
            starts: self.starts.into(),
        }
    }
}

/// Writes records and the users of their outputs.
pub(crate) struct CountedWriter {
    records: RecordWriter,
    abouts: Box<[About]>,
    /// Room for the users of one kernel's outputs, the last first.
    users: Vec<u32>,
}

impl CountedWriter {
    pub(crate) fn new(n_words: usize, n_records: usize, n_registers: usize) -> Self {
        CountedWriter {
            records: RecordWriter::new(n_words, n_records),
            abouts: vec![About::NOTHING; n_registers].into(),
            users: Vec::new(),
        }
    }

    /// How many words stand in front of so many records, but for users.
    pub(crate) fn n_words(n_records: usize) -> usize {
        n_records
    }

    /// Appends a record; `None` if it would not fit. `users` appends the users of an output to a list,
    /// backwards, and says how many of them can do with a handle, which are the last of these; it is
    /// asked for the last output first. No output has a register that an earlier one had.
    pub(crate) fn write(
        &mut self,
        entrance: u32,
        operands: &[u32],
        outputs: &[Output],
        attributes: &[u32],
        functions: &[u32],
        mut users: impl FnMut(usize, &mut Vec<u32>) -> usize,
    ) -> Option<()> {
        let words = &mut self.records.words;
        // After the end.
        let first_user = words.len() + 1;
        let producer = self.records.starts.len() as u32;
        for (index, output) in outputs.iter().enumerate().rev() {
            let first_user = u32::try_from(first_user + self.users.len()).ok()?;
            let n_before = self.users.len();
            let n_early = users(index, &mut self.users) as u32;
            let n_users = (self.users.len() - n_before) as u32;
            let [register, references] = output.words();
            self.abouts[register as usize] = About {
                references,
                n_users,
                n_early,
                first_user,
                producer,
            };
        }
        let is_special = outputs.iter().any(|output| output.may_be_forwarded());
        words.push(match is_special {
            true => CountedRecord::SPECIAL,
            false => NO_USER,
        });
        if self.users.iter().any(|user| *user >= NO_USER) {
            return None;
        }
        words.append(&mut self.users);
        self.records
            .write(entrance, operands, outputs, attributes, functions)
    }

    pub(crate) fn finish(self) -> CountedRecords {
        debug_assert!(self.records.is_full(), "words are counted before");
        CountedRecords {
            records: self.records.finish(),
            abouts: self.abouts,
        }
    }
}
