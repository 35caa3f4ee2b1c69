//! Rows of bytes that windows of images look at.

use std::ops::Range;

use smallvec::SmallVec;

use super::super::ConvPlan;
use super::Bytes;
use crate::math::byte_gemm;

/// Number of bytes that are copied at once.
const SHORT: usize = 32;

/// Bytes of an image that a row of patches has in one piece.
struct Piece {
    from: usize,
    to: usize,
    len: usize,
}

impl ConvPlan {
    /// Gathers the bytes that `n` outputs from one on read, of some channels, into a row for each; more bytes lie behind
    /// the last one.
    pub(super) fn gather_bytes(
        &self,
        image: &Bytes<'_>,
        (output, n): (usize, usize),
        channels: Range<usize>,
        patches: &mut Vec<u8>,
    ) {
        let n_own = channels.len();
        let row_len = self.windows.n_taps() * n_own;
        let (step, stride) = (self.step(), self.windows.0[2].window.stride * self.channels);
        // Each row is filled.
        patches.resize(n * row_len + byte_gemm::BEHIND, 0);
        let mut pieces: SmallVec<[Piece; 16]> = SmallVec::new();
        let mut row = 0;
        while row < n {
            let (start, own) = self.image(output + row);
            let n_alike = self.windows.n_alike(own).min(n - row);
            pieces.clear();
            self.windows.runs(own, |tap, place, n_run| {
                let (from, to) = (start + place * self.channels + channels.start, tap * n_own);
                // A run whose elements are neighbours is one piece.
                let (n_pieces, len) = match step == n_own {
                    true => (1, n_run * n_own),
                    false => (n_run, n_own),
                };
                pieces.extend((0..n_pieces).map(|index| Piece {
                    from: from + index * step,
                    to: to + index * n_own,
                    len,
                }));
            });
            let is_whole = pieces.iter().map(|piece| piece.len).sum::<usize>() == row_len;
            for index in 0..n_alike {
                let patches = &mut patches[(row + index) * row_len..];
                if !is_whole {
                    patches[..row_len].fill(image.around);
                }
                for piece in &pieces {
                    let from = &image.bytes[piece.from + index * stride..];
                    let to = &mut patches[piece.to..];
                    // Bytes behind a short piece are those of the next one, which are written later.
                    if is_whole
                        && piece.len <= SHORT
                        && let (Some(from), Some(to)) =
                            (from.first_chunk::<SHORT>(), to.first_chunk_mut::<SHORT>())
                    {
                        *to = *from;
                    } else {
                        to[..piece.len].copy_from_slice(&from[..piece.len]);
                    }
                }
            }
            row += n_alike;
        }
    }
}
