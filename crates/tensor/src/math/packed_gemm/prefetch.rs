//! Prefetch hints to the caches.

/// Prefetches the cache line of an element that will be written.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn for_writing(element: &f32) {
    use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};

    // SAFETY: a hint reads and writes nothing, whatever the address; SSE, which has it, is there on all x86-64.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(element).cast());
    }
}

/// Does nothing: other processors have no such hint here.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn for_writing(_: &f32) {}

/// Prefetches the cache line `n` elements behind one that is read. There need not be an element.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn for_reading<T>(element: &T, n: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    let address = std::ptr::from_ref(element).wrapping_add(n);
    // SAFETY: as for writing: a hint reads nothing, be there something at the address or not.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
}

/// Does nothing: other processors have no such hint here.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn for_reading<T>(_: &T, _: usize) {}
