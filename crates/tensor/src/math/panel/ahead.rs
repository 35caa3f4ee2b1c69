//! Asking the caches ahead for what is needed soon.

/// Asks for the line of an element that will be written.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn for_writing(element: &f32) {
    use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};

    // SAFETY: a hint reads and writes nothing, whatever the address; SSE, which has it, is there on all x86-64.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(element).cast());
    }
}

/// Asks for the line of an element that will be written: not here.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn for_writing(_: &f32) {}
