//! AMX: eight tile registers of a thread, each of up to sixteen rows of 64 bytes, which instructions multiply as a whole.
//!
//! The standard library has no stable functions for the instructions, so they are written out, here and where products are
//! made. A thread configures its tiles, multiplies, and releases them; the system keeps them for a thread that another one
//! interrupts. Linux wants a process to ask for the registers, once; elsewhere they are not used.

use std::marker::PhantomData;

/// Factors of products that tiles are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    /// Bytes, with sums of `i32`.
    Bytes,
    /// `bf16`, with sums of `f32`.
    Bf16,
}

/// Returns whether the processor has the products, and the system lets this process use them.
pub(crate) fn is_available(products: Products) -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    return linux::has(products) && linux::is_permitted();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
    return {
        let _ = products;
        false
    };
}

/// The tiles of this thread, configured for products of one or two groups of rows; released when dropped.
///
/// Tiles 0 to 3 are sums, of the first group and of the second, each by two panels of sixteen columns; 4 and 5 are the rows, 6
/// and 7 the panels. Invariant: this process may use tiles.
pub(crate) struct Tiles {
    n_rows: [usize; 2],
    /// Tiles are of one thread.
    confined: PhantomData<*const ()>,
}

impl Tiles {
    /// Configures tiles for two groups of at most sixteen rows, the first of at least one.
    ///
    /// # Panics
    ///
    /// If they are more or less, or this process may not use tiles.
    pub(crate) fn new(n_rows: [usize; 2]) -> Tiles {
        assert!((1..=16).contains(&n_rows[0]) && n_rows[1] <= 16);
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
        linux::configure(n_rows);
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
        unreachable!("who chose the instructions has asked");
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
        Tiles {
            n_rows,
            confined: PhantomData,
        }
    }

    /// Returns the number of rows of each group.
    pub(crate) fn n_rows(&self) -> [usize; 2] {
        self.n_rows
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
impl Drop for Tiles {
    fn drop(&mut self) {
        linux::release();
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod linux {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::OnceLock;

    use super::Products;

    /// Returns whether the processor has tiles (CPUID 7, EDX bit 24) and these products (bits 25 and 22).
    pub(super) fn has(products: Products) -> bool {
        let wanted = 1 << 24
            | match products {
                Products::Bytes => 1 << 25,
                Products::Bf16 => 1 << 22,
            };
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & wanted == wanted
    }

    /// Returns whether this process may use tiles. The system is asked once.
    pub(super) fn is_permitted() -> bool {
        static PERMITTED: OnceLock<bool> = OnceLock::new();
        *PERMITTED.get_or_init(|| is_enabled() && is_granted())
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
    fn is_granted() -> bool {
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

    /// A configuration, as the processor reads it.
    #[repr(C, align(64))]
    struct Configuration {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        n_rows: [u8; 16],
    }

    /// Configures the tiles of this thread for groups of so many rows.
    ///
    /// # Panics
    ///
    /// If this process may not use tiles.
    pub(super) fn configure(n_rows: [usize; 2]) {
        assert!(is_permitted(), "who chose the instructions has asked");
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
        // 64 bytes. Nobody else on this thread uses tiles: who does gives them back before anything else runs.
        unsafe {
            asm!(
                "ldtilecfg [{}]", in(reg) &raw const configuration, options(readonly, nostack, preserves_flags),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            );
        }
    }

    /// Releases the tiles of this thread.
    pub(super) fn release() {
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
