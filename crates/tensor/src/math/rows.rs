//! Rows that are made one by one.

use std::mem::size_of_val;

use super::vectorized;

/// How far ahead memory is asked for, in bytes, at least: so long does it take to arrive.
const AHEAD: usize = 2048;
/// Bytes that come from memory together.
const LINE: usize = 64;
/// Passes over a row that ask for what comes next.
const N_PASSES: usize = 2;
/// Elements between which it is told what will be read next.
pub(crate) const SEGMENT: usize = 256;

/// What will be read and written after a row.
///
/// While a row is calculated with, nothing would be asked of memory; and all at once is more than the processor
/// can wait for. So whoever calculates asks for some of it now and then: [`step`](Self::step).
#[derive(Debug)]
pub(crate) struct Ahead<'a, T> {
    x: &'a [T],
    /// Where as many elements will be written. It is never read or written through.
    out: *const T,
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
            out: std::ptr::null(),
            n_asked: 0,
            n_each: 0,
        }
    }

    /// Asks for what comes next, once for each [`SEGMENT`] of each of [`N_PASSES`] passes.
    #[inline]
    pub(crate) fn step(&mut self) {
        let end = self.x.len().min(self.n_asked + self.n_each);
        prefetch(&self.x[self.n_asked..end]);
        prefetch_for_writing(self.out.wrapping_add(self.n_asked), end - self.n_asked);
        self.n_asked = end;
    }
}

/// A row that is made of another, or of itself.
///
/// It is written by a pass that calculates, rather than copied first: so the processor fetches the lines that are
/// written while it is busy.
#[derive(Debug)]
pub(crate) struct Row<'r, T> {
    // Invariant: as long as `out`.
    x: Option<&'r [T]>,
    out: &'r mut [T],
    ahead: Ahead<'r, T>,
}

impl<'r, T: Copy> Row<'r, T> {
    /// A row that is made of itself.
    pub(crate) fn in_place(out: &'r mut [T]) -> Self {
        Row {
            x: None,
            out,
            ahead: Ahead::none(),
        }
    }

    /// The elements, as they are now.
    pub(crate) fn elements(&self) -> &[T] {
        self.x.unwrap_or(self.out)
    }

    /// The elements, once all are written, and what comes after the row.
    pub(crate) fn written(self) -> (&'r mut [T], Ahead<'r, T>) {
        debug_assert!(self.x.is_none(), "something was written");
        (self.out, self.ahead)
    }

    /// The elements, as they are now, and what comes after the row.
    pub(crate) fn parts(&mut self) -> (&[T], &mut Ahead<'r, T>) {
        (self.x.unwrap_or(self.out), &mut self.ahead)
    }

    /// Writes a function of each element: these are the elements from now on.
    pub(crate) fn write(&mut self, function: impl Fn(T) -> T + Copy) {
        let (x, ahead) = (self.x, &mut self.ahead);
        let segments = self.out.chunks_mut(SEGMENT);
        vectorized(
            #[inline(always)]
            move || match x {
                Some(x) => {
                    for (out, x) in segments.zip(x.chunks(SEGMENT)) {
                        ahead.step();
                        for (out, x) in out.iter_mut().zip(x) {
                            *out = function(*x);
                        }
                    }
                }
                None => {
                    for out in segments {
                        ahead.step();
                        out.iter_mut().for_each(|x| *x = function(*x));
                    }
                }
            },
        );
        self.x = None;
    }
}

/// Makes each row of `out` of that of `x`. What is left of `x` after the last whole row is left out.
///
/// # Panics
///
/// If `row` is 0.
pub(crate) fn each_row<T: Copy>(
    x: &[T],
    row: usize,
    out: &mut [T],
    mut make: impl FnMut(Row<'_, T>),
) {
    let distance = (AHEAD / size_of::<T>().max(1)).max(row) - row;
    let n_each = row.div_ceil(row.div_ceil(SEGMENT) * N_PASSES);
    let (rows, out) = (x.chunks_exact(row), out.chunks_exact_mut(row));
    for (index, (from, out)) in rows.zip(out).enumerate() {
        let after = &x[(index + 1) * row..];
        let skipped = distance.min(after.len());
        let ahead = Ahead {
            x: &after[skipped..],
            out: out.as_ptr().wrapping_add(row + skipped),
            n_asked: 0,
            n_each,
        };
        let x = Some(from);
        make(Row { x, out, ahead });
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
