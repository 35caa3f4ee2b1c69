//! Products of bytes by AMX: tiles of sixteen rows, which the processor multiplies as a whole.
//!
//! The standard library has no such instructions yet, so they are written out. A thread configures its tiles, multiplies,
//! and releases them; the system keeps them for a thread that another one interrupts. Linux asks processes to request the
//! registers, once.

#[cfg(target_os = "linux")]
pub(super) use linux::Tiles;

/// Returns whether the processor has the instructions, and the system lets this process use them.
pub(super) fn is_available() -> bool {
    #[cfg(target_os = "linux")]
    return linux::is_available();
    #[cfg(not(target_os = "linux"))]
    return false;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::marker::PhantomData;
    use std::sync::OnceLock;

    use crate::math::byte_gemm::quads::{Left, QUADS, Quads, Sums, TILE_ROWS};

    pub(super) fn is_available() -> bool {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        *AVAILABLE.get_or_init(|| is_present() && is_enabled() && is_permitted())
    }

    /// Returns whether the processor has tiles (CPUID 7, EDX bit 24) and their products of bytes (bit 25).
    fn is_present() -> bool {
        const TILES_AND_BYTES: u32 = 3 << 24;
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & TILES_AND_BYTES == TILES_AND_BYTES
    }

    /// Returns whether the system keeps tiles and their configuration when threads change (XCR0 bits 17 and 18).
    fn is_enabled() -> bool {
        const HAS_XGETBV: u32 = 1 << 27;
        const KEPT: u32 = 3 << 17;
        if __cpuid(1).ecx & HAS_XGETBV == 0 {
            return false;
        }
        let low: u32;
        // SAFETY: the system has enabled the instruction, which reads a register.
        unsafe {
            asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
        }
        low & KEPT == KEPT
    }

    /// Asks the system for the registers of tiles; it refuses if a thread's signal stack is too small for them.
    fn is_permitted() -> bool {
        const ARCH_PRCTL: isize = 158;
        const REQUEST_PERMISSION: usize = 0x1023;
        const TILE_DATA: usize = 18;
        let status: isize;
        // SAFETY: the call takes two numbers, and neither reads nor writes memory of the process.
        unsafe {
            asm!(
                "syscall", inlateout("rax") ARCH_PRCTL => status, in("rdi") REQUEST_PERMISSION, in("rsi") TILE_DATA,
                out("rcx") _, out("r11") _, options(nostack),
            );
        }
        status == 0
    }

    /// The tiles of this thread, configured for products of one or two groups of rows; released when dropped.
    ///
    /// Tiles 0 to 3 are sums, of the first rows and of the second, each by two panels; 4 and 5 are rows, 6 and 7 panels.
    pub(in super::super) struct Tiles {
        n_rows: [usize; 2],
        /// Tiles are of one thread.
        confined: PhantomData<*const ()>,
    }

    /// A configuration, as the processor reads it.
    #[repr(C, align(64))]
    struct Configuration {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        n_rows: [u8; 16],
    }

    impl Tiles {
        /// Configures tiles for two groups of at most sixteen rows, the first of at least one.
        ///
        /// # Panics
        ///
        /// If they are more or less, or the instructions are not available.
        pub(in super::super) fn new(n_rows: [usize; 2]) -> Tiles {
            assert!(is_available(), "who chose the instructions has asked");
            assert!((1..=16).contains(&n_rows[0]) && n_rows[1] <= 16);
            let [first, second] = n_rows.map(|n| u8::try_from(n).unwrap_or(16));
            let mut configuration = Configuration {
                palette: 1,
                start_row: 0,
                reserved: [0; 14],
                row_bytes: [0; 16],
                n_rows: [0; 16],
            };
            let tiles = [first, first, second, second, first, second, 16, 16];
            for (tile, n) in tiles.into_iter().enumerate().filter(|(_, n)| *n > 0) {
                configuration.n_rows[tile] = n;
                configuration.row_bytes[tile] = 64;
            }
            // SAFETY: the process may use tiles, and the configuration is one of palette 1, whose limits are sixteen rows of
            // 64 bytes. Nothing else in the process uses tiles.
            unsafe {
                asm!(
                    "ldtilecfg [{}]", in(reg) &raw const configuration, options(readonly, nostack, preserves_flags),
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                );
            }
            Tiles {
                n_rows,
                confined: PhantomData,
            }
        }

        /// Multiplies rows from one on, as many as are configured, by one panel or two; of one, the second half of sums is
        /// left as it is.
        ///
        /// # Panics
        ///
        /// If rows or panels don't have as many bytes.
        pub(in super::super) fn multiply(
            &self,
            left: &Left<'_>,
            row: usize,
            panels: &[&[Quads]],
            sums: &mut Sums,
        ) {
            let [first, second] = self.n_rows;
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

    impl Drop for Tiles {
        fn drop(&mut self) {
            // SAFETY: the process may use tiles, and those of this thread are not needed any more.
            unsafe {
                asm!(
                    "tilerelease", options(nomem, nostack, preserves_flags),
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                );
            }
        }
    }
}
