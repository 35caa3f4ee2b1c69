//! Conversions of `f16` by instructions of the processor (F16C of x86-64), eight at a time: a quarter of the time that
//! [`halves`](super::halves) takes by shifts and sums, with the same bits.

/// Converts the first elements of `x` to `f32`; returns their number, 0 without instructions for it.
#[cfg(target_arch = "x86_64")]
pub(super) fn widen(x: &[u16], out: &mut [f32]) -> usize {
    if !x86::is_available() {
        return 0;
    }
    // SAFETY: the processor has the instructions.
    unsafe { x86::widen(x.as_chunks().0, out.as_chunks_mut().0) }
}

/// Rounds the first elements of `x` to `f16`; returns their number, 0 without instructions for it.
#[cfg(target_arch = "x86_64")]
pub(super) fn narrow(x: &[f32], out: &mut [u16]) -> usize {
    if !x86::is_available() {
        return 0;
    }
    // SAFETY: the processor has the instructions.
    unsafe { x86::narrow(x.as_chunks().0, out.as_chunks_mut().0) }
}

/// Converts no elements: other processors have no such instructions.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn widen(_: &[u16], _: &mut [f32]) -> usize {
    0
}

/// Converts no elements: other processors have no such instructions.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn narrow(_: &[f32], _: &mut [u16]) -> usize {
    0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::{
        __m128i, __m256, _MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph,
    };

    use pulp::bytemuck::cast;

    use crate::math::packed_gemm::InstructionSet;

    /// Returns whether the processor has the instructions, and the process may use them.
    pub(super) fn is_available() -> bool {
        is_x86_feature_detected!("f16c") && InstructionSet::Avx2.is_available()
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen(x: &[[u16; 8]], out: &mut [[f32; 8]]) -> usize {
        for (out, x) in out.iter_mut().zip(x) {
            *out = cast::<__m256, _>(_mm256_cvtph_ps(cast(*x)));
        }
        x.len().min(out.len()) * 8
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow(x: &[[f32; 8]], out: &mut [[u16; 8]]) -> usize {
        for (out, x) in out.iter_mut().zip(x) {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(cast(*x));
            *out = cast::<__m128i, _>(halves);
        }
        x.len().min(out.len()) * 8
    }
}
