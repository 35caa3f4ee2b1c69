//! Products of bytes by AMX: tiles of sixteen rows, which the processor multiplies as a whole.

use std::arch::asm;

use super::quads::{Left, QUADS, Quads, Sums, TILE_ROWS};
use crate::math::amx::Tiles;

impl Tiles {
    /// Multiplies rows from one on, as many as are configured, by one panel or two; of one, the second half of sums is
    /// left as it is.
    ///
    /// # Panics
    ///
    /// If rows or panels don't have as many bytes.
    pub(super) fn multiply_bytes(
        &self,
        left: &Left<'_>,
        row: usize,
        panels: &[&[Quads]],
        sums: &mut Sums,
    ) {
        let [first, second] = self.n_rows();
        let n_blocks = left.offsets().len();
        let fits = row + first + second <= left.n_rows() && (1..=2).contains(&panels.len());
        assert!(fits && first + second <= TILE_ROWS);
        assert!(panels.iter().all(|panel| panel.len() >= n_blocks * QUADS));
        if n_blocks == 0 {
            sums.0.fill([0; 32]);
            return;
        }
        let start = left.bytes()[row * left.stride()..].as_ptr();
        let behind = start.wrapping_add(first * left.stride());
        let (one, two) = (panels[0].as_ptr(), panels[panels.len() - 1].as_ptr());
        let to = sums.0.as_mut_ptr();
        /// Runs the instructions of a product: a loop over blocks of the depth between what is done once.
        macro_rules! product {
            ([$($zero:literal)*], [$($block:literal)*], [$($store:literal)*]) => {
                // SAFETY: the tiles are configured for as many rows of 64 bytes. A row begins at its number times the
                // stride, each block of it at an offset: these bytes lie in the slice, as was checked
                // when the left side was made (`Left::new`). A block of a panel is sixteen vectors; panels have as many blocks as there are
                // offsets, which are at least one. Sums have `TILE_ROWS` rows of 128 bytes, those of the second group
                // behind those of the first.
                unsafe {
                    asm!(
                        $($zero,)*
                        "2:",
                        "mov {at}, [{offsets}]",
                        "lea {rows}, [{start} + {at}]",
                        "add {at}, {behind}",
                        $($block,)*
                        "add {offsets}, 8",
                        "add {one}, 1024",
                        "add {two}, 1024",
                        "dec {n}",
                        "jnz 2b",
                        "add {width}, {width}",
                        "mov {at}, {then}",
                        $($store,)*
                        offsets = inout(reg) left.offsets().as_ptr() => _,
                        at = out(reg) _,
                        rows = out(reg) _,
                        start = in(reg) start,
                        behind = in(reg) behind,
                        stride = in(reg) left.stride(),
                        one = inout(reg) one => _,
                        two = inout(reg) two => _,
                        width = inout(reg) 64_usize => _,
                        n = inout(reg) n_blocks => _,
                        to = in(reg) to,
                        then = in(reg) to.wrapping_add(first),
                        options(nostack),
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    );
                }
            };
        }
        match (second > 0, panels.len() > 1) {
            (true, true) => product!(
                ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
                [
                    "tileloadd tmm4, [{rows} + {stride}]"
                    "tileloadd tmm6, [{one} + {width}]"
                    "tdpbusd tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{two} + {width}]"
                    "tdpbusd tmm1, tmm4, tmm7"
                    "tileloadd tmm5, [{at} + {stride}]"
                    "tdpbusd tmm2, tmm5, tmm6"
                    "tdpbusd tmm3, tmm5, tmm7"
                ],
                [
                    "tilestored [{to} + {width}], tmm0"
                    "tilestored [{to} + {width} + 64], tmm1"
                    "tilestored [{at} + {width}], tmm2"
                    "tilestored [{at} + {width} + 64], tmm3"
                ]
            ),
            (true, false) => product!(
                ["tilezero tmm0" "tilezero tmm2"],
                [
                    "tileloadd tmm4, [{rows} + {stride}]"
                    "tileloadd tmm6, [{one} + {width}]"
                    "tdpbusd tmm0, tmm4, tmm6"
                    "tileloadd tmm5, [{at} + {stride}]"
                    "tdpbusd tmm2, tmm5, tmm6"
                ],
                [
                    "tilestored [{to} + {width}], tmm0"
                    "tilestored [{at} + {width}], tmm2"
                ]
            ),
            (false, true) => product!(
                ["tilezero tmm0" "tilezero tmm1"],
                [
                    "tileloadd tmm4, [{rows} + {stride}]"
                    "tileloadd tmm6, [{one} + {width}]"
                    "tdpbusd tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{two} + {width}]"
                    "tdpbusd tmm1, tmm4, tmm7"
                ],
                [
                    "tilestored [{to} + {width}], tmm0"
                    "tilestored [{to} + {width} + 64], tmm1"
                ]
            ),
            (false, false) => product!(
                ["tilezero tmm0"],
                [
                    "tileloadd tmm4, [{rows} + {stride}]"
                    "tileloadd tmm6, [{one} + {width}]"
                    "tdpbusd tmm0, tmm4, tmm6"
                ],
                ["tilestored [{to} + {width}], tmm0"]
            ),
        }
    }
}
