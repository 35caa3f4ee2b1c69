//! The instruction sets that products of bytes are written for.

use crate::math::amx;
use crate::math::packed_gemm::InstructionSet;

/// An instruction set that multiplies bytes. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByteInstructions {
    /// No particular instructions.
    Plain,
    /// AVX2: two products of 16 bits at a time.
    Avx2,
    /// AVX-VNNI: four products of bytes at a time, in vectors of 256 bits.
    AvxVnni,
    /// AVX-512 VNNI: the same in vectors of 512 bits.
    Avx512Vnni,
    /// AMX: tiles of sixteen rows and sixteen columns; AVX-512 VNNI for what is too small for tiles.
    Amx,
}

impl ByteInstructions {
    /// All instruction sets, whether this processor has them or not.
    pub const ALL: [ByteInstructions; 5] = [
        ByteInstructions::Plain,
        ByteInstructions::Avx2,
        ByteInstructions::AvxVnni,
        ByteInstructions::Avx512Vnni,
        ByteInstructions::Amx,
    ];

    /// Returns the best that this processor has, within the limits of the process.
    pub fn best() -> ByteInstructions {
        let [plain, others @ ..] = ByteInstructions::ALL;
        let best = others.into_iter().rev().find(|set| set.is_available());
        best.unwrap_or(plain)
    }

    /// Returns whether this processor has the instructions, the system lets the process use them, and the process is
    /// not limited to others.
    pub fn is_available(self) -> bool {
        self <= InstructionSet::limit_of_bytes() && self.is_present()
    }

    #[cfg(target_arch = "x86_64")]
    fn is_present(self) -> bool {
        use std::arch::is_x86_feature_detected as has;

        match self {
            ByteInstructions::Plain => true,
            ByteInstructions::Avx2 => InstructionSet::Avx2.is_available(),
            ByteInstructions::AvxVnni => has!("avx2") && has!("avxvnni"),
            ByteInstructions::Avx512Vnni => {
                InstructionSet::Avx512.is_available() && has!("avx512vnni")
            }
            ByteInstructions::Amx => {
                ByteInstructions::Avx512Vnni.is_present() && amx::is_available(amx::Products::Bytes)
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_present(self) -> bool {
        self == ByteInstructions::Plain
    }

    /// Returns the set's name.
    pub const fn name(self) -> &'static str {
        match self {
            ByteInstructions::Plain => "plain",
            ByteInstructions::Avx2 => "avx2",
            ByteInstructions::AvxVnni => "avxvnni",
            ByteInstructions::Avx512Vnni => "avx512vnni",
            ByteInstructions::Amx => "amx",
        }
    }
}
