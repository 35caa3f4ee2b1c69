//! Rows that are made one by one, in place of a copy of theirs, which stays in the cache meanwhile.

use std::mem::size_of_val;

/// How far ahead memory is asked for, in bytes, at least: so long does it take to arrive.
const AHEAD: usize = 2048;
/// Bytes that come from memory together.
const LINE: usize = 64;

/// What will be read after a row.
///
/// While a row is calculated with, nothing would be asked of memory; and all at once is more than the processor
/// can wait for. So whoever calculates asks for some of it now and then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead<'a, T>(&'a [T]);

impl<T> Ahead<'_, T> {
    /// Nothing is known to come.
    pub(crate) const NOTHING: Self = Ahead(&[]);

    /// Asks for what will be read where now the elements from `start` to `end` are.
    #[inline]
    pub(crate) fn prefetch(&self, start: usize, end: usize) {
        let len = self.0.len();
        prefetch(&self.0[start.min(len)..end.min(len)]);
    }
}

/// Copies each row of `x` to `out`, where `change` then makes it what it should be. What is left of `x` after
/// the last whole row is left out.
///
/// # Panics
///
/// If `row` is 0.
pub(crate) fn each_row<T: Copy>(
    x: &[T],
    row: usize,
    out: &mut [T],
    change: impl Fn(&mut [T], Ahead<'_, T>),
) {
    let distance = (AHEAD / size_of::<T>().max(1)).max(row) - row;
    let (rows, out) = (x.chunks_exact(row), out.chunks_exact_mut(row));
    for (index, (from, made)) in rows.zip(out).enumerate() {
        let after = &x[(index + 1) * row..];
        made.copy_from_slice(from);
        change(made, Ahead(&after[distance.min(after.len())..]));
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
