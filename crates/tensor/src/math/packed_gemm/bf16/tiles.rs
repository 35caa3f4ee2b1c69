//! Products of `bf16` numbers by AMX: tiles of sixteen rows, which the processor multiplies as a whole.

use crate::math::amx::Tiles;

/// Rows of a tile, and its columns of 32 bits.
pub(crate) const SIDE: usize = 16;
/// Numbers of `bf16` in a row of a tile.
pub(crate) const DEPTH: usize = 2 * SIDE;
/// A row of a tile. It is a line of the caches: rows that lie across two take longer to load.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct TileRow(pub(crate) [u16; DEPTH]);

/// Elements of a panel that are prefetched while a tile is multiplied: a quarter of as many as are read.
pub(crate) const AHEAD: usize = SIDE * 2 * SIDE / 4;

/// The sums of two tiles of rows and two tiles of columns.
#[repr(align(64))]
pub(crate) struct Sums(pub(crate) [[f32; 2 * SIDE]; 2 * SIDE]);

impl Tiles {
    /// Multiplies rows by columns, with tiles that are configured for two groups of sixteen rows: `left` has one tile of rows, or two, each `n` tiles deep, one behind the other; `right` has
    /// in each row the pairs of `WIDTH` columns, 16 or 32. Sums of rows or columns that there are not are left as they were.
    /// Meanwhile [`AHEAD`] elements of `ahead` for each tile of the depth come nearer, as far as there are so many.
    ///
    /// # Panics
    ///
    /// If the tiles are configured otherwise, `left` has not one or two times `n` tiles, or `right` fewer pairs than `n` tiles are deep.
    pub(crate) fn multiply_rounded<const WIDTH: usize>(
        &mut self,
        left: &[TileRow],
        right: &[f32],
        n: usize,
        sums: &mut Sums,
        ahead: &[f32],
    ) {
        assert_eq!(self.n_rows(), [SIDE; 2]);
        assert!(
            left.len() == n * SIDE || left.len() == 2 * n * SIDE,
            "one tile of rows or two"
        );
        assert!(
            right.len() >= n * SIDE * WIDTH,
            "a panel as deep as the rows"
        );
        if n == 0 {
            return sums.0.iter_mut().for_each(|row| row.fill(0.0));
        }
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
        match (left.len() == n * SIDE, WIDTH) {
            (true, SIDE) => linux::one_by_one(left, right, n, sums, ahead),
            (true, _) => linux::one_by_two(left, right, n, sums, ahead),
            (false, SIDE) => linux::two_by_one(left, right, n, sums, ahead),
            (false, _) => linux::two_by_two(left, right, n, sums, ahead),
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod linux {
    use std::arch::asm;

    use super::{SIDE, Sums, TileRow};

    /// Defines a function that multiplies some tiles of rows by some tiles of columns. All take the first tile of rows at
    /// `{a}`, the second one at `{c}`, and tiles of columns at `{b}`, whose rows lie `{apart}` bytes apart. Of `{ahead}`, some
    /// lines are asked for in each step, if there are 32 columns; there need not be so many.
    macro_rules! product {
        ($name:ident, $width:literal, $zero:tt, $step:tt, $store:tt) => {
            pub(super) fn $name(left: &[TileRow], right: &[f32], n: usize, sums: &mut Sums, ahead: &[f32]) {
                let a = left.as_ptr();
                // Of one tile of rows the second address is not used.
                let c = left.as_ptr().wrapping_add(n * SIDE);
                // SAFETY: the caller has checked that there are as many tiles as are read, `n` of each row and column, and
                // `sums` has room for four; `n` is not 0; the registers are configured, and nobody keeps anything in them.
                unsafe {
                    product!(@asm $zero $step $store, a, c, right, n, sums, ahead, $width);
                }
            }
        };
        (@asm [$($zero:literal)*] [$($step:literal)*] [$($store:literal)*],
            $a:ident, $c:ident, $right:ident, $n:ident, $sums:ident, $ahead:ident, $width:literal) => {
            asm!(
                $($zero,)*
                "2:",
                $($step,)*
                "add {a}, 1024",
                "add {c}, 1024",
                "add {b}, {step}",
                "add {ahead}, 512",
                "dec {n}",
                "jnz 2b",
                $($store,)*
                a = inout(reg) $a => _,
                c = inout(reg) $c => _,
                b = inout(reg) $right.as_ptr() => _,
                ahead = inout(reg) $ahead.as_ptr() => _,
                n = inout(reg) $n => _,
                line = in(reg) 64_usize,
                apart = in(reg) $width * 64_usize,
                step = in(reg) $width * 1024_usize,
                sums = in(reg) $sums.0.as_mut_ptr(),
                row = in(reg) 128_usize,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            )
        };
    }

    product!(
        two_by_two, 2,
        ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
        [
            "tileloadd tmm4, [{a} + {line}]"
            "tileloadd tmm6, [{b} + {apart}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
            "tileloadd tmm7, [{b} + {apart} + 64]"
            "tdpbf16ps tmm1, tmm4, tmm7"
            "tileloadd tmm5, [{c} + {line}]"
            "tdpbf16ps tmm2, tmm5, tmm6"
            "tdpbf16ps tmm3, tmm5, tmm7"
            ".irp line, 0, 64, 128, 192, 256, 320, 384, 448"
            "prefetcht1 [{ahead} + \\line]"
            ".endr"
        ],
        [
            "tilestored [{sums} + {row}], tmm0"
            "tilestored [{sums} + {row} + 64], tmm1"
            "tilestored [{sums} + {row} + 2048], tmm2"
            "tilestored [{sums} + {row} + 2112], tmm3"
        ]
    );
    product!(
        one_by_two, 2,
        ["tilezero tmm0" "tilezero tmm1"],
        [
            "tileloadd tmm4, [{a} + {line}]"
            "tileloadd tmm6, [{b} + {apart}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
            "tileloadd tmm7, [{b} + {apart} + 64]"
            "tdpbf16ps tmm1, tmm4, tmm7"
            ".irp line, 0, 64, 128, 192, 256, 320, 384, 448"
            "prefetcht1 [{ahead} + \\line]"
            ".endr"
        ],
        [
            "tilestored [{sums} + {row}], tmm0"
            "tilestored [{sums} + {row} + 64], tmm1"
        ]
    );
    product!(
        two_by_one, 1,
        ["tilezero tmm0" "tilezero tmm2"],
        [
            "tileloadd tmm4, [{a} + {line}]"
            "tileloadd tmm6, [{b} + {apart}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
            "tileloadd tmm5, [{c} + {line}]"
            "tdpbf16ps tmm2, tmm5, tmm6"
        ],
        [
            "tilestored [{sums} + {row}], tmm0"
            "tilestored [{sums} + {row} + 2048], tmm2"
        ]
    );
    product!(
        one_by_one, 1,
        ["tilezero tmm0"],
        [
            "tileloadd tmm4, [{a} + {line}]"
            "tileloadd tmm6, [{b} + {apart}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
        ],
        ["tilestored [{sums} + {row}], tmm0"]
    );
}
