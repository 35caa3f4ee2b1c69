//! Rows that are made one by one.

use std::mem::size_of_val;

use super::vectorized;

/// How far ahead memory is asked for, in bytes, at least: so long does it take to arrive.
const AHEAD: usize = 2048;
/// Bytes that come from memory together.
const LINE: usize = 64;
/// Elements between which it is told what will be read next.
pub(crate) const SEGMENT: usize = 256;

/// What will be read after a row.
///
/// While a row is calculated with, nothing would be asked of memory; and all at once is more than the processor
/// can wait for. So whoever calculates asks for some of it now and then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead<'a, T>(&'a [T]);

impl<T> Ahead<'_, T> {
    /// Asks for what will be read where now the elements from `start` to `end` are.
    #[inline]
    pub(crate) fn prefetch(&self, start: usize, end: usize) {
        let len = self.0.len();
        prefetch(&self.0[start.min(len)..end.min(len)]);
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
        let ahead = Ahead(&[]);
        Row {
            x: None,
            out,
            ahead,
        }
    }

    /// The elements, as they are now.
    pub(crate) fn elements(&self) -> &[T] {
        self.x.unwrap_or(self.out)
    }

    /// The elements, once all are written.
    pub(crate) fn written(self) -> &'r mut [T] {
        debug_assert!(self.x.is_none(), "something was written");
        self.out
    }

    /// What will be read after this row; it is to be asked for once.
    pub(crate) fn take_ahead(&mut self) -> Ahead<'r, T> {
        std::mem::replace(&mut self.ahead, Ahead(&[]))
    }

    /// Writes a function of each element: these are the elements from now on.
    pub(crate) fn write(&mut self, function: impl Fn(T) -> T + Copy) {
        let (len, ahead) = (self.out.len(), self.take_ahead());
        for start in (0..len).step_by(SEGMENT) {
            let end = len.min(start + SEGMENT);
            ahead.prefetch(start, end);
            let out = &mut self.out[start..end];
            let x = self.x.map(|x| &x[start..end]);
            vectorized(
                #[inline(always)]
                move || match x {
                    Some(x) => {
                        for (out, x) in out.iter_mut().zip(x) {
                            *out = function(*x);
                        }
                    }
                    None => out.iter_mut().for_each(|x| *x = function(*x)),
                },
            );
        }
        self.x = None;
    }
}

/// Makes each row of `out` of that of `x`. What is left of `x` after the last whole row is left out.
///
/// # Panics
///
/// If `row` is 0.
pub(crate) fn each_row<T: Copy>(x: &[T], row: usize, out: &mut [T], make: impl Fn(Row<'_, T>)) {
    let distance = (AHEAD / size_of::<T>().max(1)).max(row) - row;
    let (rows, out) = (x.chunks_exact(row), out.chunks_exact_mut(row));
    for (index, (from, out)) in rows.zip(out).enumerate() {
        let after = &x[(index + 1) * row..];
        make(Row {
            x: Some(from),
            out,
            ahead: Ahead(&after[distance.min(after.len())..]),
        });
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
