//! [`KernelView`]: operands, attributes, functions, results and users, as `&[u32]` in place.
//!
//! A record is a run of words:
//!
//! | Words | Meaning |
//! |---|---|
//! | 1 | kernel code |
//! | 1 | location |
//! | 4 | numbers of operands, attributes, functions and results |
//! | results | number of users of each result |
//! | operands | registers |
//! | attributes | offsets in the Attributes section |
//! | functions | function indexes |
//! | results | registers |
//! | users | kernels that read result 0, then result 1, and so on |

use std::{fmt, ops::Range};

use crate::{
    file::KernelRecord,
    function::Body,
    layout::{KERNEL_HEADER_WORDS, KernelCode, KernelIndex, LocationOffset},
};

/// A kernel of a function.
#[derive(Clone, Copy)]
pub struct KernelView<'a> {
    body: Body<'a>,
    index: KernelIndex,
    record: &'a KernelRecord,
    shape: RecordLayout,
}

/// The positions of a record's parts, in words of the Functions section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordLayout {
    start: usize,
    n_operands: usize,
    n_attributes: usize,
    n_functions: usize,
    n_results: usize,
}

impl RecordLayout {
    /// Reads the counts of the record at `start`, if its header is inside.
    pub(crate) fn read(words: &[u32], start: usize) -> Option<RecordLayout> {
        let header = words.get(start..)?.get(..KERNEL_HEADER_WORDS)?;
        Some(RecordLayout {
            start,
            n_operands: header[2] as usize,
            n_attributes: header[3] as usize,
            n_functions: header[4] as usize,
            n_results: header[5] as usize,
        })
    }

    /// Returns where the record ends, if that is inside.
    ///
    /// Until this was checked, no other part may be asked for but counts.
    pub(crate) fn end(&self, words: &[u32]) -> Option<usize> {
        // Counts have 32 bits and there are few of them: their sums fit 64.
        let fixed = self.n_operands + self.n_attributes + self.n_functions + 2 * self.n_results;
        let fixed_end = self.start + KERNEL_HEADER_WORDS + fixed;
        if fixed_end > words.len() {
            return None;
        }
        let users = words[self.user_counts()]
            .iter()
            .map(|count| *count as usize);
        let end = fixed_end + users.sum::<usize>();
        (end <= words.len()).then_some(end)
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn n_operands(&self) -> usize {
        self.n_operands
    }

    pub(crate) fn n_results(&self) -> usize {
        self.n_results
    }

    pub(crate) fn user_counts(&self) -> Range<usize> {
        let start = self.start + KERNEL_HEADER_WORDS;
        start..start + self.n_results
    }

    pub(crate) fn operands(&self) -> Range<usize> {
        let start = self.user_counts().end;
        start..start + self.n_operands
    }

    pub(crate) fn attributes(&self) -> Range<usize> {
        let start = self.operands().end;
        start..start + self.n_attributes
    }

    pub(crate) fn functions(&self) -> Range<usize> {
        let start = self.attributes().end;
        start..start + self.n_functions
    }

    pub(crate) fn results(&self) -> Range<usize> {
        let start = self.functions().end;
        start..start + self.n_results
    }
}

impl<'a> KernelView<'a> {
    pub(crate) fn new(
        body: Body<'a>,
        index: KernelIndex,
        record: &'a KernelRecord,
    ) -> KernelView<'a> {
        let shape = RecordLayout::read(body.words(), record.word as usize)
            .expect("open() checked that the record is inside");
        KernelView {
            body,
            index,
            record,
            shape,
        }
    }

    /// Returns the position in the function.
    pub fn index(&self) -> KernelIndex {
        self.index
    }

    /// Returns the position of the kernel's name in the file.
    pub fn code(&self) -> KernelCode {
        KernelCode(self.body.words()[self.shape.start])
    }

    /// Returns the name of the kernel.
    pub fn name(&self) -> &'a str {
        self.body.file().kernel_name(self.code())
    }

    /// Returns the location of the operation in the source.
    pub fn location(&self) -> LocationOffset {
        LocationOffset(self.body.words()[self.shape.start + 1])
    }

    /// Returns the registers that the kernel reads.
    pub fn operands(&self) -> &'a [u32] {
        &self.body.words()[self.shape.operands()]
    }

    /// Returns the offsets of the kernel's attributes, in the order of their names.
    pub fn attributes(&self) -> &'a [u32] {
        &self.body.words()[self.shape.attributes()]
    }

    /// Returns the functions that the kernel may call: those it names, then its regions.
    pub fn functions(&self) -> &'a [u32] {
        &self.body.words()[self.shape.functions()]
    }

    /// Returns the registers that the kernel writes.
    pub fn results(&self) -> &'a [u32] {
        &self.body.words()[self.shape.results()]
    }

    /// Returns the kernels that read a result, once for each operand.
    ///
    /// # Panics
    ///
    /// If there is no such result.
    pub fn users(&self, result: usize) -> &'a [u32] {
        let register = self.results()[result];
        let start = self.body.users_word(register);
        let n_users = self.body.words()[self.shape.user_counts()][result] as usize;
        &self.body.words()[start..start + n_users]
    }

    /// Returns the users of result 0 of the pseudo kernel, whose register is past the table.
    pub(crate) fn entry_users(&self) -> &'a [u32] {
        let n_users = self.body.words()[self.shape.user_counts().start] as usize;
        &self.body.words()[self.shape.results().end..][..n_users]
    }

    /// Returns the stream that the kernel runs in.
    pub fn stream(&self) -> u32 {
        self.record.stream
    }

    /// Returns the name of an attribute, if the file lists it.
    ///
    /// # Panics
    ///
    /// If there is no such attribute.
    pub fn attribute_name(&self, attribute: usize) -> Option<&'a str> {
        assert!(
            attribute < self.attributes().len(),
            "no attribute {attribute}"
        );
        let file = self.body.file();
        let names = &file.index().attribute_names;
        let name = names.get(self.record.first_name as usize + attribute)?;
        Some(file.text(*name))
    }

    /// Returns whether the kernel starts when any one operand is there.
    pub fn nonstrict(&self) -> bool {
        self.record.nonstrict
    }
}

impl fmt::Debug for KernelView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelView")
            .field("function", &self.body.function())
            .field("index", &self.index)
            .field("operands", &self.operands())
            .field("results", &self.results())
            .finish_non_exhaustive()
    }
}
