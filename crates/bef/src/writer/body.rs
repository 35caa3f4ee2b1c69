//! [`BodyWriter`]: a body's kernels, each written when it is known.
//!
//! A record says how long its lists are before it says what is in them. So the counts
//! are left open when a record starts and filled in as the lists come, in their order:
//! operands, attributes, functions, results, users of each result.

use super::Payload;
use crate::{
    layout::KERNEL_ALIGNMENT,
    varint::{self, MAX_BYTES},
};

/// A function's body while its kernels are written, the pseudo kernel first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyWriter {
    /// Offset in [`BefWriter::locations`](super::BefWriter::locations).
    pub location: u32,
    /// The number of reads of each register.
    pub use_counts: Vec<u32>,
    /// Type of each register.
    pub register_types: Vec<u32>,
    /// Registers that the function returns.
    pub results: Vec<u32>,
    /// Offsets in [`BefWriter::strings`](super::BefWriter::strings) of the names of the kernels'
    /// attributes, one after the other.
    pub attribute_names: Vec<u32>,
    /// The kernels that start when any one operand is there.
    pub(super) nonstrict: Vec<u32>,
    pub(super) n_kernels: u32,
    /// The offset, wait count and stream of each kernel.
    heads: Vec<u8>,
    /// The kernels' records.
    words: Vec<u32>,
}

/// The fields of a kernel's record in front of its lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelHead {
    /// The position of the kernel's name in [`BefWriter::kernels`](super::BefWriter::kernels).
    pub code: u32,
    /// Offset in [`BefWriter::locations`](super::BefWriter::locations).
    pub location: u32,
    /// The number of operands to wait for.
    pub wait_count: u32,
    /// The stream that the kernel runs in.
    pub stream: u32,
    /// Whether the kernel starts when any one operand is there.
    pub nonstrict: bool,
}

impl BodyWriter {
    /// Makes room for kernels and the words of their records.
    pub fn reserve(&mut self, n_kernels: usize, n_words: usize) {
        const HEAD_BYTES: usize = 6;
        self.heads.reserve(n_kernels * HEAD_BYTES);
        self.words.reserve(n_words);
    }

    /// Starts the record of the next kernel, which has as many lists of users as results.
    pub fn kernel(&mut self, head: KernelHead, n_user_lists: usize) -> ListWriter<'_> {
        // Sections are below 4 GiB.
        let offset = self.words.len() * size_of::<u32>();
        for number in [offset as u64, head.wait_count.into(), head.stream.into()] {
            varint::write(&mut self.heads, number);
        }
        if head.nonstrict {
            self.nonstrict.push(self.n_kernels);
        }
        self.n_kernels += 1;
        let counts = self.words.len() + 2;
        self.words
            .extend_from_slice(&[head.code, head.location, 0, 0, 0, 0]);
        self.words.resize(self.words.len() + n_user_lists, 0);
        ListWriter {
            words: &mut self.words,
            next_count: counts,
        }
    }

    /// Returns about how many bytes the body takes.
    pub(super) fn len_bytes(&self) -> usize {
        let small = self.use_counts.len() + self.results.len();
        size_of_val(&*self.words) + self.heads.len() + 2 * small + MAX_BYTES + KERNEL_ALIGNMENT
    }

    /// Appends the body and returns where it starts.
    pub(super) fn write(&self, payload: &mut Payload) -> usize {
        let start = payload.len();
        payload.varint(self.location);
        payload.count(self.use_counts.len());
        for count in &self.use_counts {
            payload.varint(*count);
        }
        payload.varint(self.n_kernels);
        payload.bytes(&self.heads);
        for result in &self.results {
            payload.varint(*result);
        }
        payload.align(KERNEL_ALIGNMENT);
        payload.words(&self.words);
        start
    }
}

/// A writer of a kernel's lists, in the order of the format.
#[derive(Debug)]
pub struct ListWriter<'b> {
    words: &'b mut Vec<u32>,
    /// The index of the word for the next list's length.
    next_count: usize,
}

impl ListWriter<'_> {
    /// Writes the next list; the order is operands, attributes, functions, results, users of each
    /// result.
    ///
    /// # Panics
    ///
    /// If there are more lists than the record was started for.
    pub fn list(&mut self, entries: impl IntoIterator<Item = u32>) {
        let start = self.words.len();
        self.words.extend(entries);
        // Sections are below 4 GiB.
        self.words[self.next_count] = (self.words.len() - start) as u32;
        self.next_count += 1;
    }
}
