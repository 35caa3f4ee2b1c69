//! Convolutions of bytes whose channels don't mix (depthwise), by AVX-512 VNNI: 64 channels at a time, of which each has
//! four taps of its window in a sum of 32 bits.
//!
//! Taps lie apart in images; their bytes are brought together in registers, in an order of channels that suits the
//! processor. Filters, factors and summands are laid out in that order, and packing results to bytes takes it back.

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_epi32, _mm512_cvtepi32_ps, _mm512_cvtps_epi32, _mm512_dpbusd_epi32,
    _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps,
    _mm512_packs_epi32, _mm512_packus_epi16, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16,
    _mm512_xor_si512,
};

use pulp::bytemuck::cast;

use crate::DType;
use crate::math::byte_gemm::{ByteEpilogue, ByteInstructions};

/// Number of channels of a block.
const CHANNELS: usize = 64;
/// Number of taps that are added at a time.
const TAPS: usize = 4;

/// For each four taps of a block's channels their bytes, in the order of registers.
type Fours = [[[i8; TAPS]; 16]; 4];

/// A filter of signed bytes with one channel each.
#[derive(Debug)]
pub(super) struct ChannelFilter {
    /// For each block of channels its fours.
    fours: Vec<Fours>,
    n_taps: usize,
    /// For each channel the sum of its elements.
    sums: Vec<i32>,
}

impl ChannelFilter {
    /// Packs factors, `[taps, channels]`, if all are signed bytes and these instructions have AVX-512 VNNI.
    pub(super) fn new(
        set: ByteInstructions,
        factors: &[i16],
        n_taps: usize,
    ) -> Option<ChannelFilter> {
        let fits = factors.iter().all(|factor| (-128..=127).contains(factor));
        if !fits || n_taps == 0 || set < ByteInstructions::Avx512Vnni {
            return None;
        }
        let n_channels = factors.len() / n_taps;
        let n_fours = n_taps.div_ceil(TAPS);
        let mut fours = vec![[[[0; TAPS]; 16]; 4]; n_channels.div_ceil(CHANNELS) * n_fours];
        let mut sums = vec![0; n_channels];
        for (tap, factors) in factors.chunks_exact(n_channels).enumerate() {
            for (channel, factor) in factors.iter().enumerate() {
                let fours = &mut fours[channel / CHANNELS * n_fours + tap / TAPS];
                let (register, lane) = place(channel % CHANNELS);
                #[expect(clippy::cast_possible_truncation, reason = "they are bytes")]
                let factor = *factor as i8;
                fours[register][lane][tap % TAPS] = factor;
                sums[channel] += i32::from(factor);
            }
        }
        Some(ChannelFilter {
            fours,
            n_taps,
            sums,
        })
    }

    pub(super) fn n_taps(&self) -> usize {
        self.n_taps
    }
}

/// Returns the register and its lane that a channel of a block is in.
fn place(channel: usize) -> (usize, usize) {
    (channel / 4 % 4, channel / 16 * 4 + channel % 4)
}

/// A tap of some outputs: the channels that the first one sees begin the bytes; the next one sees those a step further.
#[derive(Clone, Copy)]
pub(super) struct Tap<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) step: usize,
}

/// Makes the bytes of outputs, all channels of each.
///
/// # Panics
///
/// If taps, channels or bytes are not as many, or the processor does not have the instructions.
pub(super) fn convolve(
    filter: &ChannelFilter,
    taps: &[Tap<'_>],
    (dtype, zero): (DType, i32),
    by: &ByteEpilogue,
    out: &mut [u8],
) {
    assert!(has!("avx512f") && has!("avx512bw") && has!("avx512vnni"));
    let n_channels = filter.sums.len();
    let n = out.len().checked_div(n_channels).unwrap_or(0);
    let Some(last) = n.checked_sub(1) else { return };
    assert!(taps.len() == filter.n_taps && by.n_columns() == n_channels);
    for tap in taps {
        let end = last
            .checked_mul(tap.step)
            .and_then(|start| start.checked_add(n_channels));
        assert!(
            end.is_some_and(|end| end <= tap.bytes.len()),
            "taps lie within"
        );
    }
    // As unsigned bytes.
    let (flip, zero) = match dtype {
        DType::I8 => (0x80, zero + 128),
        _ => (0, zero),
    };
    let n_fours = filter.n_taps.div_ceil(TAPS);
    for (index, fours) in filter.fours.chunks_exact(n_fours).enumerate() {
        let first = index * CHANNELS;
        let n_own = CHANNELS.min(n_channels - first);
        let mut block = Block {
            first,
            n_own,
            fours,
            added: [[0; 16]; 4],
            factors: [[0.0; 16]; 4],
            flip,
        };
        let columns = first..first + n_own;
        let own = by.bias(columns.clone()).iter().zip(by.factors(columns));
        for (channel, (bias, factor)) in own.enumerate() {
            let (register, lane) = place(channel);
            let sum = filter.sums[first + channel];
            block.added[register][lane] = bias.wrapping_sub(zero.wrapping_mul(sum));
            block.factors[register][lane] = *factor;
        }
        // SAFETY: the processor has the instructions; there are as many taps as the filter has, and for each output all
        // channels of each, as was checked.
        unsafe { block.run(taps, by, (n, n_channels), out) };
    }
}

/// Channels of a filter that are multiplied together.
struct Block<'a> {
    /// The first channel.
    first: usize,
    /// Number of channels.
    n_own: usize,
    fours: &'a [Fours],
    /// Numbers that are added to sums, and those that sums are multiplied by.
    added: [[i32; 16]; 4],
    factors: [[f32; 16]; 4],
    /// The bits that differ between bytes of images and unsigned ones.
    flip: u8,
}

impl Block<'_> {
    /// Makes the channels of outputs.
    ///
    /// # Safety
    ///
    /// The processor has the instructions. Taps are as many as the filter has, at least one, and have `n_channels` bytes for
    /// each of `n` outputs.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn run(
        &self,
        taps: &[Tap<'_>],
        by: &ByteEpilogue,
        (n, n_channels): (usize, usize),
        out: &mut [u8],
    ) {
        let mask = u64::MAX >> (CHANNELS - self.n_own);
        let flip = _mm512_set1_epi8(self.flip.cast_signed());
        let (least, largest, zero, flip_out) = by.range().unsigned();
        let (least, largest) = (_mm512_set1_ps(least), _mm512_set1_ps(largest));
        let (zero, flip_out) = (_mm512_set1_epi32(zero), _mm512_set1_epi8(flip_out));
        let added: [__m512i; 4] = cast(self.added);
        let factors: [__m512; 4] = cast(self.factors);
        let (last, out) = (taps.len() - 1, &mut out[..n * n_channels]);
        for (index, out) in out.chunks_exact_mut(n_channels).enumerate() {
            let mut sums = added;
            for (four, right) in self.fours.iter().enumerate() {
                let mut x = [flip; TAPS];
                for (tap, x) in x.iter_mut().enumerate() {
                    // Factors behind the last tap are 0.
                    // SAFETY: at most the last one.
                    let tap = unsafe { taps.get_unchecked((four * TAPS + tap).min(last)) };
                    // SAFETY: the output's channels lie within the bytes, as the caller says.
                    let at = unsafe { tap.bytes.as_ptr().add(index * tap.step + self.first) };
                    // SAFETY: the mask is of the channels that are left.
                    let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, at.cast()) };
                    *x = _mm512_xor_si512(bytes, flip);
                }
                let [a, b, c, d] = x;
                let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
                let (then, behind) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
                let x = [
                    _mm512_unpacklo_epi16(low, then),
                    _mm512_unpackhi_epi16(low, then),
                    _mm512_unpacklo_epi16(high, behind),
                    _mm512_unpackhi_epi16(high, behind),
                ];
                for register in 0..4 {
                    let right = cast::<_, __m512i>(right[register]);
                    sums[register] = _mm512_dpbusd_epi32(sums[register], x[register], right);
                }
            }
            for (sum, factor) in sums.iter_mut().zip(factors) {
                let value = _mm512_mul_ps(_mm512_cvtepi32_ps(*sum), factor);
                // Of what is no number, the second operand is taken.
                let value = _mm512_min_ps(_mm512_max_ps(value, least), largest);
                *sum = _mm512_add_epi32(_mm512_cvtps_epi32(value), zero);
            }
            let [a, b, c, d] = sums;
            let (low, high) = (_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
            let bytes = _mm512_xor_si512(_mm512_packus_epi16(low, high), flip_out);
            // SAFETY: the mask is of the channels that are left.
            unsafe { _mm512_mask_storeu_epi8(out[self.first..].as_mut_ptr().cast(), mask, bytes) };
        }
    }
}
