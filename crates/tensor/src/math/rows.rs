//! Rows that are made one by one.

use std::mem::size_of_val;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use super::{parallel, vectorized};
use crate::{Element, to_bytes, to_bytes_mut};

/// How far ahead memory is asked for, in bytes, at least: so long does it take to arrive.
const AHEAD: usize = 2048;
/// Bytes that come from memory together.
const LINE: usize = 64;
/// Passes over a row that ask for what comes next.
const N_PASSES: usize = 2;
/// Elements between which it is told what will be read next.
pub(crate) const SEGMENT: usize = 256;
/// Results of more bytes are streamed: no cache holds them until somebody reads them.
const STREAMED_BYTES: usize = 32 << 20;
/// Bytes of rows that are streamed. Of shorter ones much is parts of lines, which are not streamed; of longer ones
/// what is between their passes would not stay near.
const STREAMED_ROW_BYTES: RangeInclusive<usize> = 8 * LINE..=64 << 10;

/// What will be read and written after a row.
///
/// While a row is calculated with, nothing would be asked of memory; and all at once is more than the processor
/// can wait for. So whoever calculates asks for some of it now and then: [`step`](Self::step).
#[derive(Debug)]
pub(crate) struct Ahead<'a, T> {
    x: &'a [T],
    /// Where as many elements will be written, unless they are streamed. It is never read or written through.
    out: Option<*const T>,
    /// How many elements were asked for.
    n_asked: usize,
    /// Elements of a step.
    n_each: usize,
}

impl<T> Ahead<'_, T> {
    /// Nothing.
    fn none() -> Self {
        Ahead {
            x: &[],
            out: None,
            n_asked: 0,
            n_each: 0,
        }
    }

    /// Asks for what comes next, once for each [`SEGMENT`] of each of [`N_PASSES`] passes.
    #[inline(always)]
    pub(crate) fn step(&mut self) {
        let end = self.x.len().min(self.n_asked + self.n_each);
        prefetch(&self.x[self.n_asked..end]);
        if let Some(out) = self.out {
            prefetch_for_writing(out.wrapping_add(self.n_asked), end - self.n_asked);
        }
        self.n_asked = end;
    }
}

/// A row that is made of another, or of itself, in passes, all of them within what is [`vectorized`].
///
/// It is written by a pass that calculates, rather than copied first: so the processor fetches the lines that are
/// written while it is busy. Or, of a large result, passes write to memory that stays near, and the last one streams
/// what it makes to where it belongs: these lines are not fetched at all.
#[derive(Debug)]
pub(crate) struct Row<'r, T> {
    // Invariant: as long as `out`.
    x: Option<&'r [T]>,
    out: &'r mut [T],
    /// Where the last pass copies what it wrote.
    // Invariant: as long as `out`.
    streamed: Option<&'r mut [T]>,
    ahead: Ahead<'r, T>,
}

impl<'r, T: Element> Row<'r, T> {
    /// A row that is made of itself.
    pub(crate) fn in_place(out: &'r mut [T]) -> Self {
        Row {
            x: None,
            out,
            streamed: None,
            ahead: Ahead::none(),
        }
    }

    /// The elements, as they are now.
    pub(crate) fn elements(&self) -> &[T] {
        self.x.unwrap_or(self.out)
    }

    /// The elements, as they are now, and what comes after the row.
    pub(crate) fn parts(&mut self) -> (&[T], &mut Ahead<'r, T>) {
        (self.x.unwrap_or(self.out), &mut self.ahead)
    }

    /// Writes a function of each element: these are the elements from now on.
    #[inline(always)]
    pub(crate) fn write(&mut self, function: impl Fn(T) -> T + Copy) {
        self.pass(&mut [], function);
    }

    /// Writes a function of each element, for the last time.
    #[inline(always)]
    pub(crate) fn finish(mut self, function: impl Fn(T) -> T + Copy) {
        let streamed = self.streamed.take().unwrap_or_default();
        self.pass(streamed, function);
    }

    /// Writes a function of each element, and copies it to memory that is as long, or empty.
    #[inline(always)]
    fn pass(&mut self, streamed: &mut [T], function: impl Fn(T) -> T + Copy) {
        let mut x = self.x.take().map(|x| x.chunks(SEGMENT));
        let mut streamed = streamed.chunks_mut(SEGMENT);
        for out in self.out.chunks_mut(SEGMENT) {
            self.ahead.step();
            match x.as_mut().and_then(Iterator::next) {
                Some(x) => {
                    for (out, x) in out.iter_mut().zip(x) {
                        *out = function(*x);
                    }
                }
                None => {
                    for x in &mut *out {
                        *x = function(*x);
                    }
                }
            }
            if let Some(to) = streamed.next() {
                stream(out, to);
            }
        }
    }

    /// Changes the elements, once all are written, for the last time: `make` is given segment by segment, each with
    /// the number of its first element.
    #[inline(always)]
    pub(crate) fn finish_segments(self, mut make: impl FnMut(usize, &mut [T])) {
        debug_assert!(self.x.is_none(), "something was written");
        let mut ahead = self.ahead;
        let streamed = self.streamed.unwrap_or_default();
        let mut streamed = streamed.chunks_mut(SEGMENT);
        for (number, segment) in self.out.chunks_mut(SEGMENT).enumerate() {
            ahead.step();
            make(number * SEGMENT, segment);
            if let Some(to) = streamed.next() {
                stream(segment, to);
            }
        }
    }
}

/// Whether a result of so many elements, in rows of `row`, is streamed.
pub(crate) fn is_streamed<T>(n_elements: usize, row: usize) -> bool {
    let bytes = |n: usize| n.saturating_mul(size_of::<T>());
    bytes(n_elements) > STREAMED_BYTES && STREAMED_ROW_BYTES.contains(&bytes(row))
}

/// How many elements a chunk of whole rows has, as of [`parallel::chunk_len`]. Of what is streamed it has more: each
/// chunk needs memory for a row, and waits for the end of its streams.
pub(crate) fn chunk_len(
    is_streamed: bool,
    operations_per_element: usize,
    row: usize,
) -> NonZeroUsize {
    let operations = match is_streamed {
        true => 1,
        false => operations_per_element,
    };
    parallel::chunk_len(operations, row)
}

/// Makes each row of `out`, which is the whole or a part of a result that is streamed or not, of that of `x`. What is
/// left of `x` after the last whole row is left out. `make`, which is to be inlined, runs [`vectorized`].
///
/// # Panics
///
/// If `row` is 0.
pub(crate) fn each_row<T: Element>(
    x: &[T],
    row: usize,
    out: &mut [T],
    is_streamed: bool,
    mut make: impl FnMut(Row<'_, T>),
) {
    let n_near = match is_streamed {
        true => row.min(x.len()),
        false => 0,
    };
    let mut near = vec![T::ZERO; n_near];
    let distance = (AHEAD / size_of::<T>().max(1)).max(row) - row;
    let n_each = row.div_ceil(row.div_ceil(SEGMENT) * N_PASSES);
    let (rows, out) = (x.chunks_exact(row), out.chunks_exact_mut(row));
    vectorized(
        #[inline(always)]
        || {
            for (index, (from, out)) in rows.zip(out).enumerate() {
                let after = &x[(index + 1) * row..];
                let skipped = distance.min(after.len());
                let next = out.as_ptr().wrapping_add(row + skipped);
                let ahead = Ahead {
                    x: &after[skipped..],
                    out: (!is_streamed).then_some(next),
                    n_asked: 0,
                    n_each,
                };
                let (out, streamed) = match is_streamed {
                    true => (&mut near[..], Some(out)),
                    false => (out, None),
                };
                make(Row {
                    x: Some(from),
                    out,
                    streamed,
                    ahead,
                });
            }
        },
    );
    if is_streamed {
        end_of_streams();
    }
}

/// Copies elements past the caches, to as many. Other threads may see it after [`end_of_streams`].
#[inline(always)]
fn stream<T: Element>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_stream_si128};
        const WIDTH: usize = size_of::<__m128i>();
        let (from, to) = (to_bytes(from), to_bytes_mut(to));
        // Of a line that is not streamed as a whole memory would be asked for the rest.
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (from_head, from) = from.split_at(head);
        let (to_head, to) = to.split_at_mut(head);
        to_head.copy_from_slice(from_head);
        let (from, from_tail) = from.as_chunks::<LINE>();
        let (to, to_tail) = to.as_chunks_mut::<LINE>();
        let from = from.as_flattened().as_chunks::<WIDTH>().0;
        let to = to.as_flattened_mut().as_chunks_mut::<WIDTH>().0;
        for (from, to) in from.iter().zip(to) {
            // SAFETY: a vector has as many bytes, and they may be any.
            let vector = unsafe { std::mem::transmute::<[u8; WIDTH], __m128i>(*from) };
            // SAFETY: these bytes of the slice are aligned, since lines begin at the first byte that a line begins
            // at. SSE2 is part of the architecture. Nobody looks at them before `end_of_streams`, as is written there.
            unsafe { _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>(), vector) };
        }
        to_tail.copy_from_slice(from_tail);
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

/// What was streamed stands before all that this thread reads or writes from now on: [`each_row`] ends so, which has
/// the memory for itself until then.
fn end_of_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no operands, and is part of the architecture.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Asks for elements to be brought into the cache.
#[inline]
fn prefetch<T>(elements: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of_val(elements)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = elements.as_ptr().wrapping_byte_add(offset);
        // SAFETY: the address is that of a byte of the slice; and prefetching is a hint, which neither reads nor
        // fails.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, LINE);
}

/// Asks for elements to be brought into the cache, which will be written.
#[inline]
fn prefetch_for_writing<T>(first: *const T, n: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..n.saturating_mul(size_of::<T>())).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        let address = first.wrapping_byte_add(offset);
        // SAFETY: prefetching is a hint, which neither reads nor writes nor fails, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, n, LINE);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Twice each element, plus its place in the row, by three passes.
    fn made(x: &[f32], row: usize, out: &mut [f32], is_streamed: bool) {
        each_row(
            x,
            row,
            out,
            is_streamed,
            #[inline(always)]
            |mut row| {
                row.write(|x| x * 2.0);
                row.write(|x| x + 1.0);
                #[expect(clippy::cast_precision_loss, reason = "few")]
                row.finish_segments(|first, segment| {
                    for (index, x) in segment.iter_mut().enumerate() {
                        *x += (first + index) as f32 - 1.0;
                    }
                });
            },
        );
    }

    #[test]
    fn large_results_are_streamed_but_for_short_and_long_rows() {
        let n = STREAMED_BYTES / size_of::<f32>();
        for (n_elements, row, wanted) in [
            (n + 1, 127, false),
            (n + 1, 128, true),
            (n + 1, 1 << 14, true),
            (n + 1, (1 << 14) + 1, false),
            (n, 128, false),
            (usize::MAX, usize::MAX, false),
            (n + 1, 0, false),
        ] {
            let found = is_streamed::<f32>(n_elements, row);
            assert_eq!(found, wanted, "{n_elements} in rows of {row}");
        }
        assert!(chunk_len(true, 32, 2000).get() >= 10 * 2000);
        assert_eq!(chunk_len(false, 32, 2000).get(), 2000);
    }

    proptest! {
        #[test]
        fn rows_that_are_streamed_are_the_same(
            (n_rows, row, skipped) in (0..5_usize, 1..700_usize, 0..20_usize),
            values in prop::collection::vec(-9.0..9.0_f32, 5 * 700),
        ) {
            let n = n_rows * row;
            let mut expected = vec![7.0; n];
            made(&values[..n], row, &mut expected, false);
            // Lines begin anywhere in a row.
            let mut found = vec![7.0; skipped + n + 20];
            made(&values[..n], row, &mut found[skipped..skipped + n], true);
            prop_assert_eq!(&found[skipped..skipped + n], &expected[..]);
            let around = found[..skipped].iter().chain(&found[skipped + n..]);
            prop_assert!(around.into_iter().all(|x| *x == 7.0));
            // The last pass may read what was given.
            let twice = |out: &mut [f32], is_streamed| {
                each_row(
                    &values[..n],
                    row,
                    out,
                    is_streamed,
                    #[inline(always)]
                    |row| row.finish(|x| x * 2.0),
                );
            };
            twice(&mut expected, false);
            twice(&mut found[skipped..skipped + n], true);
            prop_assert_eq!(&found[skipped..skipped + n], &expected[..]);
        }
    }
}
