//! AMX: eight tile registers, each of sixteen rows of 64 bytes, and instructions that multiply tiles of `bf16` numbers and
//! add the products to tiles of `f32`.
//!
//! Rust has no stable intrinsics for them: the instructions are assembly. A process asks the system once whether it may use
//! the registers ([`Amx::get`]); a thread configures them for some products ([`Amx::configure`]), and gives them back.

use std::marker::PhantomData;

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

/// The right to use the tile registers: the processor has them, and the system has allowed them to this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amx(());

/// The tile registers of this thread, configured for whole tiles; given back at the end.
pub(crate) struct Tiles(PhantomData<*const ()>);

impl Amx {
    /// Returns the right to use the registers, if this process has it. The system is asked once.
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    pub(crate) fn get() -> Option<Amx> {
        use std::sync::OnceLock;

        static IS_ALLOWED: OnceLock<bool> = OnceLock::new();
        let is_allowed = IS_ALLOWED.get_or_init(|| linux::has_tiles() && linux::may_use_tiles());
        is_allowed.then_some(Amx(()))
    }

    /// Returns `None`: the registers are used on Linux alone.
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
    pub(crate) fn get() -> Option<Amx> {
        None
    }

    /// Configures the registers of this thread.
    pub(crate) fn configure(self) -> Tiles {
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
        linux::configure();
        Tiles(PhantomData)
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
impl Drop for Tiles {
    fn drop(&mut self) {
        linux::release();
    }
}

impl Tiles {
    /// Multiplies rows by columns: `left` has one tile of rows, or two, each `n` tiles deep, one behind the other; `right` has
    /// in each row the pairs of `WIDTH` columns, 16 or 32. Sums of rows or columns that there are not are left as they were.
    /// Meanwhile [`AHEAD`] elements of `ahead` for each tile of the depth come nearer, as far as there are so many.
    ///
    /// # Panics
    ///
    /// If `left` has not one or two times `n` tiles, or `right` fewer pairs than `n` tiles are deep.
    pub(crate) fn multiply<const WIDTH: usize>(
        &mut self,
        left: &[TileRow],
        right: &[f32],
        n: usize,
        sums: &mut Sums,
        ahead: &[f32],
    ) {
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
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    use super::{SIDE, Sums, TileRow};

    /// Bits of CPUID, leaf 7, register EDX: products of `bf16`, and tiles.
    const FEATURES: u32 = 1 << 22 | 1 << 24;
    /// Bit of CPUID, leaf 1, register ECX: the system saves registers that it is told of.
    const OSXSAVE: u32 = 1 << 27;
    /// Bits of the saved states: the configuration of tiles, and the tiles.
    const STATES: u32 = 1 << 17 | 1 << 18;

    /// Returns whether the processor has the instructions and the system saves the registers.
    pub(super) fn has_tiles() -> bool {
        let saves = __cpuid(0).eax >= 7 && __cpuid(1).ecx & OSXSAVE != 0;
        if !saves || __cpuid_count(7, 0).edx & FEATURES != FEATURES {
            return false;
        }
        let states: u32;
        // SAFETY: the instruction is there, since the system uses it; it reads a register.
        unsafe {
            asm!("xgetbv", in("ecx") 0, out("eax") states, out("edx") _, options(nomem, nostack, preserves_flags));
        }
        states & STATES == STATES
    }

    /// Asks the system for the tiles: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`. It refuses if the signal stack
    /// of a thread is too small.
    pub(super) fn may_use_tiles() -> bool {
        let refused: isize;
        // SAFETY: the call, 158, takes two numbers, and changes nothing but what this process may use.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") 158_isize => refused,
                in("rdi") 0x1023,
                in("rsi") 18,
                out("rcx") _,
                out("r11") _,
                options(nostack),
            );
        }
        refused == 0
    }

    /// The configuration: the form 1, then for each of sixteen registers the bytes of a row, and the number of rows.
    #[repr(C, align(64))]
    struct Configuration {
        form: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        rows: [u8; 16],
    }

    static WHOLE_TILES: Configuration = {
        let mut configuration = Configuration {
            form: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        let mut index = 0;
        while index < 8 {
            configuration.row_bytes[index] = 64;
            configuration.rows[index] = 16;
            index += 1;
        }
        configuration
    };

    pub(super) fn configure() {
        // SAFETY: who calls this has the right to use the registers; 64 bytes are read.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const WHOLE_TILES, options(nostack, readonly, preserves_flags));
        }
    }

    pub(super) fn release() {
        // SAFETY: as above. Nobody else uses the registers of this thread: the compiler does not, and others give them back
        // before they return.
        unsafe {
            asm!("tilerelease", options(nomem, nostack, preserves_flags));
        }
    }

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
