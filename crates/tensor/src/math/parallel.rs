//! Filling of an output in chunks, on the workers of a queue.
//!
//! A tensor that is made in several parts is held for writing as a whole, once; this module lends its parts itself, each
//! to one thread, so that no part is looked up in the memory's table of holders, and the memory is not divided.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tfrt_host::memory::OwnedWriting;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::{DenseHostTensor, Element, from_bytes_mut};

/// Approximate operations of a chunk: some 10 microseconds, many times the cost of handing one to another worker.
const CHUNK_OPERATIONS: usize = 1 << 15;
/// Approximate time of these operations.
const CHUNK_TIME: Duration = Duration::from_micros(10);
/// So many parts are handed out as tasks; fewer are shared with workers that are idle.
const FEW_PARTS: usize = 10;

/// Returns the number of elements of a chunk, if each takes about this many operations; a multiple of `multiple`.
///
/// It depends on the problem alone, never on the number of threads.
pub fn chunk_len(operations_per_element: usize, multiple: usize) -> NonZeroUsize {
    let multiple = multiple.max(1);
    let wanted = CHUNK_OPERATIONS / operations_per_element.max(1);
    let len = wanted.next_multiple_of(multiple).max(multiple);
    NonZeroUsize::new(len).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the beginning of part `index` of `n_units` units cut into `n_parts`, at least one; the end of the last one
/// if `index` is `n_parts`.
///
/// Any two runs of as many parts differ by one unit at most: the longer parts are spread over all, so that threads
/// which begin with halves, or quarters, end at the same time.
pub(crate) fn part_start(n_units: usize, n_parts: usize, index: usize) -> usize {
    let (each, more) = (n_units / n_parts, n_units % n_parts);
    // Neither factor is above the number of parts, nor is the quotient; the product may be too large.
    let n_longer = more as u128 * index as u128 / n_parts as u128;
    each * index + n_longer as usize
}

/// A partition of a result into chunks. It depends on the problem alone, never on the number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    n_elements: usize,
    /// Number of elements of a unit, which is not cut but for the last one.
    unit: usize,
    // Invariant: at least one.
    n_parts: usize,
}

impl Parts {
    /// Cuts elements into at most `most` parts, as even as whole units allow, if each element takes about this many
    /// operations. Their number is even, so that two threads get the same share.
    pub(crate) fn even(
        n_elements: usize,
        unit: usize,
        operations_per_element: usize,
        most: usize,
    ) -> Parts {
        let unit = unit.max(1);
        let operations = n_elements.saturating_mul(operations_per_element.max(1));
        let wanted = (operations / CHUNK_OPERATIONS).min(n_elements / unit);
        let n_parts = match wanted.min(most) {
            n @ ..2 => n.max(1),
            n => n - n % 2,
        };
        Parts {
            n_elements,
            unit,
            n_parts,
        }
    }

    /// Cuts elements into parts of `chunk` elements each, but for the last one.
    pub(crate) fn of_chunks(n_elements: usize, chunk: NonZeroUsize) -> Parts {
        Parts {
            n_elements,
            unit: chunk.get(),
            n_parts: n_elements.div_ceil(chunk.get()).max(1),
        }
    }

    /// Returns the number of parts.
    pub(crate) fn len(&self) -> usize {
        self.n_parts
    }

    /// Returns the elements of a part.
    pub(crate) fn part(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }

    fn start(&self, index: usize) -> usize {
        let n_units = self.n_elements.div_ceil(self.unit);
        part_start(n_units, self.n_parts, index)
            .saturating_mul(self.unit)
            .min(self.n_elements)
    }
}

/// Runs [`fill`] with these parts.
///
/// # Errors
///
/// See [`fill`].
pub(crate) fn fill_parts<T: Element>(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    parts: Parts,
    body: impl Fn(usize, &mut [T]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(output.metadata())?;
    if parts.len() == 1 {
        if output.n_elements() > 0 {
            body(0, output.write()?.elements_mut()?)?;
        }
        return Ok(AsyncValue::available(Chain));
    }
    let body = move |first, bytes: &mut [u8]| body(first, from_bytes_mut(bytes)?);
    spread(execution, output, size_of::<T>(), parts, Box::new(body))
}

/// Fills a tensor: `body(first, elements)` makes the elements from the `first` on, one chunk after the other,
/// or side by side on the queue's workers if there are several.
///
/// `body` borrows its operands for itself, chunk by chunk, and `body` is dropped before the result settles, unless
/// that is cancelled: nothing is held then.
/// Between chunks the request's cancellation is looked at. The result settles when all elements are made: at
/// once, if they are one chunk.
///
/// # Errors
///
/// `InvalidArgument` if the tensor's elements are no `T`s, `FailedPrecondition` if somebody else uses the tensor;
/// the result fails with the error of the last chunk that failed, or with the reason of the cancellation.
pub fn fill<T: Element>(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    chunk: NonZeroUsize,
    body: impl Fn(usize, &mut [T]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    let parts = Parts::of_chunks(output.n_elements(), chunk);
    fill_parts(execution, output, parts, body)
}

/// Runs [`fill`] for elements of any type as bytes: `body(first, bytes)` makes the bytes of the elements from the
/// `first` on.
///
/// # Errors
///
/// `InvalidArgument` if the elements are not of one size, and those of [`fill`].
pub fn fill_bytes(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    chunk: NonZeroUsize,
    body: impl Fn(usize, &mut [u8]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    let parts = Parts::of_chunks(output.n_elements(), chunk);
    fill_bytes_parts(execution, output, parts, body)
}

/// Runs [`fill_bytes`] with these parts.
///
/// # Errors
///
/// See [`fill_bytes`].
pub(crate) fn fill_bytes_parts(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    parts: Parts,
    body: impl Fn(usize, &mut [u8]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    output.metadata().len_bytes()?;
    let size = output.dtype().size_bytes().unwrap_or(1);
    if parts.len() == 1 {
        if output.n_elements() > 0 {
            body(0, output.write()?.bytes_mut())?;
        }
        return Ok(AsyncValue::available(Chain));
    }
    spread(execution, output, size, parts, Box::new(body))
}

/// Function that makes the bytes of the elements from one on.
type Body = Box<dyn Fn(usize, &mut [u8]) -> Result<(), Error> + Send + Sync>;

/// Fills a tensor of elements of `size` bytes in parts. Not generic, so that it is compiled once for the thousands of
/// callers.
fn spread(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    size: usize,
    parts: Parts,
    body: Body,
) -> Result<AsyncValue<Chain>, Error> {
    let memory = output.buffer().clone().write_owned()?;
    let n_parts = parts.len();
    let held = Mutex::new(WorkState {
        n_left: n_parts,
        is_lent: vec![false; n_parts],
        work: Some(Arc::new(Work {
            body,
            memory: PartedBytes {
                start: memory.start(),
                parts,
                size,
                writing: memory,
            },
        })),
    });
    let make = move |index| {
        let Some((work, part)) = lock(&held).lend(index) else {
            return Err(Error::internal("a part is made twice"));
        };
        let first = parts.part(index).start;
        // SAFETY: the token is of this memory, and lent once.
        let made = (work.body)(first, unsafe { work.memory.part(part) });
        drop(work);
        let last = lock(&held).finish_part();
        drop(last);
        made
    };
    Ok(match n_parts < FEW_PARTS {
        true => execution.share(n_parts, CHUNK_TIME.saturating_mul(n_parts as u32), make),
        false => execution.parallel_for(0..n_parts, NonZeroUsize::MIN, move |index, _| make(index)),
    })
}

/// Work of filling a tensor in parts: the function and the memory.
struct Work {
    body: Body,
    memory: PartedBytes,
}

/// The bytes of a tensor, held for writing, and lent in parts.
struct PartedBytes {
    // Invariant: the address of the first of the bytes that `writing` holds.
    start: NonNull<u8>,
    parts: Parts,
    /// The size of an element in bytes.
    size: usize,
    writing: OwnedWriting,
}

// SAFETY: the address leads to bytes that the right beside it holds for writing, which goes to any thread.
unsafe impl Send for PartedBytes {}
// SAFETY: as above; threads that share it get parts that have no byte in common.
unsafe impl Sync for PartedBytes {}

/// Number of a part; its holder alone has the part.
struct PartToken(usize);

impl PartedBytes {
    /// Returns the bytes of a part.
    ///
    /// # Safety
    ///
    /// The token is of this memory's list, which gives each part once.
    #[expect(clippy::mut_from_ref, reason = "each part is lent once")]
    unsafe fn part(&self, part: PartToken) -> &mut [u8] {
        let elements = self.parts.part(part.0);
        let bytes = elements.start * self.size..elements.end * self.size;
        assert!(bytes.end <= self.writing.len_bytes(), "parts are within");
        // SAFETY: within the bytes that are held, as was just checked.
        let start = unsafe { self.start.add(bytes.start) };
        // SAFETY: bytes that are held for writing, by a right that lives as long as this; a part ends where the next
        // one begins (`Parts::part`), and each is lent once, as the caller says.
        unsafe { NonNull::slice_from_raw_parts(start, bytes.len()).as_mut() }
    }
}

/// State of the work until the last part is made. The work is dropped before the result settles: readers of the
/// result may be the only holders of its memory.
struct WorkState {
    n_left: usize,
    /// For each part whether it was lent.
    is_lent: Vec<bool>,
    work: Option<Arc<Work>>,
}

impl WorkState {
    /// Lends a part to be made, unless it was lent before.
    fn lend(&mut self, index: usize) -> Option<(Arc<Work>, PartToken)> {
        let work = self.work.as_ref()?;
        let is_lent = self.is_lent.get_mut(index)?;
        if std::mem::replace(is_lent, true) {
            return None;
        }
        Some((work.clone(), PartToken(index)))
    }

    /// Counts a part as made. After the last one returns the work, to be dropped without the lock.
    fn finish_part(&mut self) -> Option<Arc<Work>> {
        self.n_left = self.n_left.saturating_sub(1);
        match self.n_left {
            0 => self.work.take(),
            _ => None,
        }
    }
}

fn lock(held: &Mutex<WorkState>) -> MutexGuard<'_, WorkState> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_elements_in_order_and_whole_units() {
        for n_elements in [0, 1, 5, 6, 7, 100, 1 << 16, 100_003] {
            for unit in [0, 1, 6, 64, 1 << 20] {
                for operations in [0, 1, 100, usize::MAX] {
                    for most in [0, 1, 2, 7, usize::MAX] {
                        let parts = Parts::even(n_elements, unit, operations, most);
                        let n = parts.len();
                        assert!(n == 1 || n.is_multiple_of(2) && n <= most);
                        let mut next = 0;
                        for index in 0..n {
                            let part = parts.part(index);
                            assert_eq!(part.start, next);
                            assert!(n == 1 || (1..n_elements).contains(&part.len()));
                            assert!(part.end == n_elements || part.end.is_multiple_of(unit.max(1)));
                            next = part.end;
                        }
                        assert_eq!(next, n_elements);
                    }
                }
            }
        }
    }

    #[test]
    fn parts_differ_by_a_unit_at_most() {
        let parts = Parts::even(1000, 6, 1 << 20, 8);
        let lens: Vec<usize> = (0..parts.len())
            .map(|index| parts.part(index).len())
            .collect();
        assert_eq!(lens, [120, 126, 126, 126, 126, 126, 126, 124]);
    }

    #[test]
    fn runs_of_as_many_parts_differ_by_a_unit_at_most() {
        for n_units in [0, 1, 7, 43, 86, 171, 1000, usize::MAX] {
            for n_parts in [1, 2, 3, 8, 16, 100] {
                let start = |index| part_start(n_units, n_parts, index);
                assert_eq!((start(0), start(n_parts)), (0, n_units));
                for n_together in 1..=n_parts {
                    let lens = (0..=n_parts - n_together)
                        .map(|first| start(first + n_together) - start(first));
                    let (least, most) = (lens.clone().min(), lens.max());
                    assert!(
                        least
                            .zip(most)
                            .is_some_and(|(least, most)| most - least <= 1)
                    );
                }
            }
        }
        let most = usize::MAX;
        assert_eq!(part_start(most - 1, most, most), most - 1);
    }

    #[test]
    fn chunks_are_of_one_length_but_for_the_last() {
        let parts = Parts::of_chunks(10, NonZeroUsize::new(4).unwrap());
        let all: Vec<_> = (0..parts.len()).map(|index| parts.part(index)).collect();
        assert_eq!(all, [0..4, 4..8, 8..10]);
        assert_eq!(Parts::of_chunks(0, NonZeroUsize::MIN).part(0), 0..0);
    }
}
