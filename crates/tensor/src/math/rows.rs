//! Results made row by row, with prefetching and streaming stores.

use std::mem::size_of_val;
use std::num::NonZeroUsize;
use std::ops::{Range, RangeInclusive};

use super::{parallel, vectorized};
use crate::{Element, to_bytes, to_bytes_mut};

/// Minimum prefetch distance in bytes: memory takes so long to arrive.
const AHEAD: usize = 2048;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Number of passes over a row that prefetch.
const N_PASSES: usize = 2;
/// Number of elements between prefetches.
pub(crate) const SEGMENT: usize = 256;
/// Elements that are streamed together: whole lines, whatever the size of an element.
const GROUP: usize = LINE;
/// Processors take a load to depend on an earlier store if these lowest bits of their addresses are equal.
const ALIASES: usize = 4096;
/// Bytes from which on results are streamed: no cache would hold them until they are read.
const STREAMED_BYTES: usize = 32 << 20;
/// Bytes of rows that are streamed. Much of shorter rows is parts of lines, which are not streamed; scratch memory
/// for longer ones would leave the caches.
const STREAMED_ROW_BYTES: RangeInclusive<usize> = 8 * LINE..=64 << 10;

/// Prefetch state of a row: elements that will be read and written next.
///
/// While a row is calculated with, nothing would be asked of memory; and all at once is more than the processor
/// can wait for. So whoever calculates asks for some of it now and then: [`step`](Self::step).
#[derive(Debug)]
pub(crate) struct Prefetch<'a, T> {
    x: &'a [T],
    /// Address of the elements that will be written next, unless they are streamed. It is never read or written
    /// through.
    out: Option<*const T>,
    /// Number of elements that were prefetched.
    n_asked: usize,
    /// Number of elements of a step.
    n_each: usize,
}

impl<T> Prefetch<'_, T> {
    /// Returns a state without anything to prefetch.
    fn none() -> Self {
        Prefetch {
            x: &[],
            out: None,
            n_asked: 0,
            n_each: 0,
        }
    }

    /// Prefetches once for each [`SEGMENT`] of each of [`N_PASSES`] passes.
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

/// Destination of a row that is streamed past the caches.
#[derive(Debug)]
struct StreamTarget<'r, T> {
    /// Destination: whole lines, but for the first and the last of a chunk.
    to: &'r mut [T],
    /// Number of elements before the row that are streamed with it: the end of the row before, which shares a line
    /// with it.
    n_before: usize,
    /// Fence, dropped before anybody else sees the streamed elements.
    end: &'r StreamFence,
}

/// Returns the number of the first `n` elements before the last line that begins among them, or right after them.
#[inline(always)]
fn whole_lines<T>(elements: &[T], n: usize) -> usize {
    let head = elements.as_ptr().align_offset(LINE);
    match n.checked_sub(head) {
        Some(n_after) => n - n_after % line_len::<T>(),
        None => 0,
    }
}

/// Returns the number of elements of a line.
const fn line_len<T>() -> usize {
    match size_of::<T>() {
        size @ 1..=LINE => LINE / size,
        _ => 1,
    }
}

/// A row that is made of another, or in place, in passes, all of them within [`vectorized`].
///
/// It is written by a pass that calculates, rather than copied first: so the processor fetches the lines that are
/// written while it is busy. Or, of a large result, passes write to memory that stays near, and the last one streams
/// what it makes to where it belongs: these lines are not fetched at all.
#[derive(Debug)]
pub(crate) struct Row<'r, T> {
    // Invariant: as long as `out` without what is before the row.
    x: Option<&'r [T]>,
    /// The row, and elements before it.
    out: &'r mut [T],
    /// Index of the row's first element.
    first: usize,
    /// Destination of whole lines in the last pass.
    streams: Option<StreamTarget<'r, T>>,
    ahead: Prefetch<'r, T>,
}

impl<'r, T: Element> Row<'r, T> {
    /// Returns a row that is made of itself.
    pub(crate) fn in_place(out: &'r mut [T]) -> Self {
        Row {
            x: None,
            out,
            first: 0,
            streams: None,
            ahead: Prefetch::none(),
        }
    }

    /// Returns the elements, as they are now.
    pub(crate) fn elements(&self) -> &[T] {
        self.x.unwrap_or(&self.out[self.first..])
    }

    /// Returns the elements as they are now; scratch memory of as many elements in the caches, if any, which is not
    /// read until the last pass writes to it; and the prefetch state of the next row.
    pub(crate) fn parts(&mut self) -> (&[T], Option<&mut [T]>, &mut Prefetch<'r, T>) {
        let out = &mut self.out[self.first..];
        match (self.x, &self.streams) {
            (Some(x), Some(_)) => (x, Some(out), &mut self.ahead),
            (Some(x), None) => (x, None, &mut self.ahead),
            (None, _) => (out, None, &mut self.ahead),
        }
    }

    /// Replaces each element by a function of it.
    #[inline(always)]
    pub(crate) fn write(&mut self, function: impl Fn(T) -> T + Copy) {
        let mut x = self.x.take().map(|x| x.chunks(SEGMENT));
        for out in self.out[self.first..].chunks_mut(SEGMENT) {
            self.ahead.step();
            match x.as_mut().and_then(Iterator::next) {
                Some(x) => {
                    for (out, x) in out.iter_mut().zip(x) {
                        *out = function(*x);
                    }
                }
                None => {
                    for x in out {
                        *x = function(*x);
                    }
                }
            }
        }
    }

    /// Replaces each element by a function of it, in the last pass.
    #[inline(always)]
    pub(crate) fn finish(mut self, function: impl Fn(T) -> T + Copy) {
        match self.streams.take() {
            Some(streams) => self.stream(
                streams,
                #[inline(always)]
                |_, part| {
                    for x in part {
                        *x = function(*x);
                    }
                },
            ),
            None => self.write(function),
        }
    }

    /// Changes the elements in parts, after the last pass: `make` is given each part with the number of its first
    /// element.
    #[inline(always)]
    pub(crate) fn finish_parts(mut self, mut make: impl FnMut(usize, &mut [T])) {
        debug_assert!(self.x.is_none(), "something was written");
        match self.streams.take() {
            Some(streams) => self.stream(streams, make),
            None => {
                for (number, segment) in self.out.chunks_mut(SEGMENT).enumerate() {
                    self.ahead.step();
                    make(number * SEGMENT, segment);
                }
            }
        }
    }

    /// Changes the elements, and streams those that fill lines. The others are left in the caches.
    ///
    /// Streamed elements are made in registers: stores to memory that is near would wait for the streams before them.
    #[inline(always)]
    fn stream<F: FnMut(usize, &mut [T])>(self, streams: StreamTarget<'r, T>, mut make: F) {
        let Row {
            x,
            out,
            first,
            mut ahead,
            ..
        } = self;
        let StreamTarget { to, n_before, end } = streams;
        let (before, len) = (first - n_before, out.len() - first);
        let make_near = |out: &mut [T], part: Range<usize>, make: &mut F| {
            let near = &mut out[first..][part.clone()];
            if let Some(x) = x {
                near.copy_from_slice(&x[part.clone()]);
            }
            make(part.start, near);
        };
        // Up to where a line begins.
        let head = to.as_ptr().align_offset(LINE).wrapping_sub(n_before) % line_len::<T>();
        let head = head.min(len);
        make_near(out, 0..head, &mut make);
        let n_head = to.len().min(n_before + head);
        let (to_head, to) = to.split_at_mut(n_head);
        stream(&out[before..][..n_head], to_head, end);
        // Whole lines.
        let groups = match to.as_ptr().align_offset(LINE) {
            0 => to.as_chunks_mut::<GROUP>().0,
            _ => &mut [],
        };
        let mut place = head;
        for (index, to) in groups.iter_mut().enumerate() {
            if index % (SEGMENT / GROUP) == 0 {
                ahead.step();
            }
            let from = x.unwrap_or(&out[first..]);
            let mut made = [T::ZERO; GROUP];
            made.copy_from_slice(&from[place..][..GROUP]);
            make(place, &mut made);
            // SAFETY: there are groups only where they begin where a line begins, and each is some lines long.
            unsafe { stream_lines(&made, to, end) };
            place += GROUP;
        }
        // What is less.
        make_near(out, place..len, &mut make);
        let to = &mut to[place - head..];
        stream(&out[first + place..][..to.len()], to, end);
    }
}

/// Returns whether a result of `n_elements` elements, in rows of `row`, is streamed.
pub(crate) fn is_streamed<T>(n_elements: usize, row: usize) -> bool {
    let bytes = |n: usize| n.saturating_mul(size_of::<T>());
    bytes(n_elements) > STREAMED_BYTES && STREAMED_ROW_BYTES.contains(&bytes(row))
}

/// Returns the number of elements of a chunk of whole rows, see [`parallel::chunk_len`]. Streamed chunks are longer:
/// each needs memory for a row, and waits for the end of its streams.
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

/// Makes each row of `out` from that of `x`; `out` is the whole or a part of a result that is streamed or not.
/// Elements of `x` behind the last whole row are ignored. `make`, which is to be inlined, runs [`vectorized`].
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
    let line_len = line_len::<T>();
    let n_rows = (x.len() / row).min(out.len() / row);
    let mut near = match is_streamed {
        true => vec![T::ZERO; line_len + ALIASES / size_of::<T>().max(1) + row],
        false => Vec::new(),
    };
    // The row begins where a line begins, and half way between addresses that are taken for those of what is read.
    // Before it is place for a part of a line.
    let line = (x.as_ptr().addr() + ALIASES / 2) / LINE * LINE;
    let skipped = line.wrapping_sub(near[line_len.min(near.len())..].as_ptr().addr()) % ALIASES;
    let near_first = line_len + skipped / size_of::<T>().max(1);
    let mut n_left = 0;
    let distance = (AHEAD / size_of::<T>().max(1)).max(row) - row;
    let n_each = row.div_ceil(row.div_ceil(SEGMENT) * N_PASSES);
    let end_of_streams = StreamFence { is_streamed };
    vectorized(
        #[inline(always)]
        || {
            let mut out = out;
            for (index, from) in x.chunks_exact(row).take(n_rows).enumerate() {
                let after = &x[(index + 1) * row..];
                let skipped = distance.min(after.len());
                let mut ahead = Prefetch {
                    x: &after[skipped..],
                    out: None,
                    n_asked: 0,
                    n_each,
                };
                let is_last = index + 1 == n_rows;
                let n = match is_streamed && !is_last {
                    true => whole_lines(out, n_left + row),
                    false => n_left + row,
                };
                let (to, rest) = std::mem::take(&mut out).split_at_mut(n);
                out = rest;
                let x = Some(from);
                if !is_streamed {
                    ahead.out = Some(to.as_ptr().wrapping_add(row + skipped));
                    make(Row {
                        x,
                        out: to,
                        first: 0,
                        streams: None,
                        ahead,
                    });
                    continue;
                }
                let end = near_first + row;
                make(Row {
                    x,
                    out: &mut near[..end],
                    first: near_first,
                    streams: Some(StreamTarget {
                        to,
                        n_before: n_left,
                        end: &end_of_streams,
                    }),
                    ahead,
                });
                n_left = n_left + row - n;
                near.copy_within(end - n_left..end, near_first - n_left);
            }
        },
    );
}

/// Copies elements past the caches. Other threads may see them after the fence.
#[inline(always)]
fn stream<T: Element>(from: &[T], to: &mut [T], end: &StreamFence) {
    #[cfg(target_arch = "x86_64")]
    {
        let (from, to) = (to_bytes(from), to_bytes_mut(to));
        // Of a line that is not streamed as a whole memory would be asked for the rest.
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (from_head, from) = from.split_at(head);
        let (to_head, to) = to.split_at_mut(head);
        to_head.copy_from_slice(from_head);
        let (from, from_tail) = from.as_chunks::<LINE>();
        let (to, to_tail) = to.as_chunks_mut::<LINE>();
        // SAFETY: the head ends where a line begins, or there is nothing behind it; the rest is whole lines.
        unsafe { stream_lines(from.as_flattened(), to.as_flattened_mut(), end) };
        to_tail.copy_from_slice(from_tail);
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = end;
        to.copy_from_slice(from);
    }
}

/// Copies whole lines past the caches, to as many elements, from the beginning of a line on. By one store for each
/// line where there is one: by several a line may leave in parts, when others come in between.
///
/// # Safety
///
/// `to` is empty, or begins where a line begins.
#[inline(always)]
unsafe fn stream_lines<T: Element>(from: &[T], to: &mut [T], _end: &StreamFence) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, __m512i, _mm_stream_si128};
        const WIDTH: usize = size_of::<__m128i>();
        let (from, to) = (to_bytes(from), to_bytes_mut(to));
        let is_at_line = to.is_empty() || to.as_ptr().addr().is_multiple_of(LINE);
        debug_assert!(is_at_line && to.len().is_multiple_of(LINE));
        if let Some(simd) = pulp::x86::V4::try_new() {
            let (from, to) = (from.as_chunks::<LINE>().0, to.as_chunks_mut::<LINE>().0);
            for (from, to) in from.iter().zip(to) {
                let line: __m512i = pulp::cast(*from);
                // SAFETY: these bytes are a line, since the first begins where the caller says. Nobody looks at them
                // before the end that was handed in, whose drop is a fence.
                unsafe {
                    simd.avx512f
                        ._mm512_stream_si512(to.as_mut_ptr().cast(), line)
                };
            }
            return;
        }
        let (from, to) = (from.as_chunks::<WIDTH>().0, to.as_chunks_mut::<WIDTH>().0);
        for (from, to) in from.iter().zip(to) {
            let vector: __m128i = pulp::cast(*from);
            // SAFETY: as above, a part of a line. SSE2 is part of the architecture.
            unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), vector) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

/// A guard that ends the streams of its thread when it is dropped: what was streamed stands before all that the thread
/// reads or writes afterwards. [`each_row`] holds one, and has the memory for itself until it returns or unwinds: when a
/// function of elements panics, the fence comes before the memory goes to anybody else.
#[derive(Debug)]
struct StreamFence {
    is_streamed: bool,
}

impl Drop for StreamFence {
    fn drop(&mut self) {
        if !self.is_streamed {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it has no operands, and is part of the architecture.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
        #[cfg(test)]
        tests::N_ENDS.set(tests::N_ENDS.get() + 1);
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

    /// Makes twice each element plus its place in the row, by three passes.
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
                row.finish_parts(|first, segment| {
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

    thread_local! {
        /// Number of streams that have ended on this thread.
        pub(super) static N_ENDS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn streams_end_when_a_function_of_elements_panics() {
        let (x, mut out) = (vec![1.0_f32; 4 * 128], vec![0.0; 4 * 128]);
        let row_panics = |out: &mut [f32], is_streamed| {
            let mut n_rows = 0;
            each_row(&x, 128, out, is_streamed, |mut row| {
                n_rows += 1;
                assert!(n_rows < 3, "planned");
                row.write(|x| x * 2.0);
                row.finish_parts(|_, _| ());
            });
        };
        for (is_streamed, n_ends) in [(false, 0), (true, 1)] {
            let before = N_ENDS.get();
            let rows = std::panic::AssertUnwindSafe(|| row_panics(&mut out, is_streamed));
            assert!(std::panic::catch_unwind(rows).is_err());
            assert_eq!(N_ENDS.get() - before, n_ends);
        }
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
