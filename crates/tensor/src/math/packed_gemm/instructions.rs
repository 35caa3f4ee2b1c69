//! The instruction sets that products of panels are written for.

use std::sync::OnceLock;

use tfrt_host::Error;

use super::bf16;
use super::few_rows::FewRows;
#[cfg(target_arch = "x86_64")]
use super::tile::HalfVectors;
use super::tile::{FullVectors, RowSource, TileOfWidth};
use crate::math::byte_gemm::ByteInstructions;

use crate::math::amx;

/// An instruction set that panels are laid out for.
///
/// Each has all that those before it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionSet {
    /// Vectors of four elements, as the compiler makes them: SSE2 on x86-64.
    Plain,
    /// AVX2 with FMA: vectors of eight elements.
    Avx2,
    /// AVX-512: vectors of sixteen elements.
    Avx512,
    /// AMX: factors are rounded to `bf16`, and sums are of `f32`. Used where a user asks for it alone.
    AmxBf16,
}

/// The best instruction set that this process may use, if it was told.
static LIMIT: OnceLock<InstructionSet> = OnceLock::new();

impl InstructionSet {
    /// All instruction sets for factors of `f32`, whether this processor has them or not.
    pub const ALL: [InstructionSet; 3] = [
        InstructionSet::Plain,
        InstructionSet::Avx2,
        InstructionSet::Avx512,
    ];

    /// Keeps this process from using better instructions than these, so that one machine can show what others
    /// compute. Called once, before anything is computed. Products of factors that are not packed don't know the
    /// limit.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if this processor does not have these instructions, or the process has another limit.
    pub fn limit_process(self) -> Result<(), Error> {
        self.expect_available()?;
        if *LIMIT.get_or_init(|| self) == self {
            return Ok(());
        }
        let message = format!(
            "the process is limited to other instructions than {} already",
            self.name()
        );
        Err(Error::failed_precondition(message))
    }

    /// Returns the best for factors of `f32` that this processor has, within the limit of the process.
    pub fn best() -> InstructionSet {
        let [plain, others @ ..] = InstructionSet::ALL;
        let best = others.into_iter().rev().find(|set| set.is_available());
        best.unwrap_or(plain)
    }

    /// Returns whether this processor has the instructions, and the process may use them.
    pub fn is_available(self) -> bool {
        if LIMIT.get().is_some_and(|limit| self > *limit) {
            return false;
        }
        match self {
            InstructionSet::Plain => true,
            InstructionSet::Avx2 => processor::has_avx2(),
            InstructionSet::Avx512 => processor::has_avx512(),
            InstructionSet::AmxBf16 => {
                processor::has_avx512() && amx::is_available(amx::Products::Bf16)
            }
        }
    }

    /// Returns whether factors are rounded to `bf16`.
    pub const fn is_bf16(self) -> bool {
        matches!(self, InstructionSet::AmxBf16)
    }

    /// Returns the best instructions that products of bytes may use in this process.
    pub(crate) fn limit_of_bytes() -> ByteInstructions {
        match LIMIT.get() {
            None | Some(InstructionSet::Avx512 | InstructionSet::AmxBf16) => ByteInstructions::Amx,
            Some(InstructionSet::Avx2) => ByteInstructions::Avx2,
            Some(InstructionSet::Plain) => ByteInstructions::Plain,
        }
    }

    /// Returns the set's name, as in files of packed weights.
    pub const fn name(self) -> &'static str {
        match self {
            InstructionSet::Plain => "plain",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx512 => "avx512",
            InstructionSet::AmxBf16 => "amx-bf16",
        }
    }

    /// Returns the instruction set of a name.
    pub fn from_name(name: &str) -> Option<InstructionSet> {
        InstructionSet::all_precisions().find(|set| set.name() == name)
    }

    /// Returns all instruction sets, those that round factors included.
    pub(crate) fn all_precisions() -> impl Iterator<Item = InstructionSet> {
        let all = InstructionSet::ALL.into_iter();
        all.chain([InstructionSet::AmxBf16])
    }

    /// Returns the number of columns of a panel, then those of narrow last panels, the widest first: with the
    /// extents, the layout of packed elements.
    pub const fn panel_columns(self) -> &'static [usize] {
        match self {
            InstructionSet::Plain => &[8, 4],
            InstructionSet::Avx2 => &[16, 8],
            InstructionSet::Avx512 => &[32, 16, 8],
            InstructionSet::AmxBf16 => &[32, 16],
        }
    }

    /// Fails with `FailedPrecondition` unless this processor has the instructions.
    pub(crate) fn expect_available(self) -> Result<(), Error> {
        if self.is_available() {
            return Ok(());
        }
        let message = format!(
            "this processor does not have the instructions of {}",
            self.name()
        );
        Err(Error::failed_precondition(message))
    }

    /// Returns the number of elements of a vector.
    pub(crate) const fn n_lanes(self) -> usize {
        match self {
            InstructionSet::Plain => 4,
            InstructionSet::Avx2 => 8,
            InstructionSet::Avx512 | InstructionSet::AmxBf16 => 16,
        }
    }

    /// Returns the number of elements of 32 bits that a column of this depth takes in a panel.
    pub(crate) const fn column_len(self, depth: usize) -> usize {
        match self {
            InstructionSet::AmxBf16 => depth.div_ceil(bf16::DEPTH) * bf16::DEPTH / 2,
            _ => depth,
        }
    }

    /// Returns the number of columns of a panel.
    pub(crate) const fn n_columns(self) -> usize {
        super::tile::VECTORS * self.n_lanes()
    }

    /// Returns the maximum number of rows of a tile.
    pub(crate) const fn max_rows(self) -> usize {
        match self {
            InstructionSet::Plain => 4,
            InstructionSet::Avx2 => 6,
            InstructionSet::Avx512 => 14,
            InstructionSet::AmxBf16 => 2 * bf16::SIDE,
        }
    }

    /// Returns the right to use it.
    ///
    /// # Panics
    ///
    /// If the processor does not have the instructions.
    pub(crate) fn processor(self) -> Processor {
        match self {
            InstructionSet::Plain => Processor::Plain,
            InstructionSet::Avx2 => processor::avx2(),
            InstructionSet::Avx512 | InstructionSet::AmxBf16 => processor::avx512(),
        }
    }
}

/// Returns pulp's token of the best instructions that this process may use.
#[inline(never)]
pub(crate) fn arch() -> pulp::Arch {
    match LIMIT.get() {
        None => pulp::Arch::new(),
        Some(set) => processor::arch(*set),
    }
}

pub(crate) use processor::Processor;

#[cfg(target_arch = "x86_64")]
mod processor {
    use pulp::x86::{V3, V4};

    use super::{FewRows, FullVectors, HalfVectors, InstructionSet, RowSource, TileOfWidth};

    /// An instruction set that the processor has.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Processor {
        Plain,
        Avx2(V3),
        Avx512(V4),
    }

    impl Processor {
        /// Makes a tile.
        #[inline]
        pub(in super::super) fn run<R: RowSource, const N_VECTORS: usize>(
            self,
            tile: TileOfWidth<'_, R, N_VECTORS>,
        ) {
            match self {
                Processor::Plain => tile.with_few(FullVectors(pulp::Scalar128b)),
                Processor::Avx2(simd) => tile.with_middle(FullVectors(simd)),
                Processor::Avx512(simd) => tile.with_wide(FullVectors(simd)),
            }
        }

        /// Makes a tile of half a vector.
        #[inline]
        pub(in super::super) fn run_half<R: RowSource>(self, tile: TileOfWidth<'_, R, 1>) {
            match self {
                Processor::Plain | Processor::Avx2(_) => self.run(tile),
                Processor::Avx512(wide) => tile.with_wide(HalfVectors { wide, half: *wide }),
            }
        }

        /// Multiplies few rows.
        #[inline]
        pub(in super::super) fn run_few(self, few: FewRows<'_>) {
            match self {
                Processor::Plain => few.with(FullVectors(pulp::Scalar128b)),
                Processor::Avx2(simd) => few.with(FullVectors(simd)),
                Processor::Avx512(simd) => few.with(FullVectors(simd)),
            }
        }

        /// Runs an operation on vectors.
        #[inline]
        pub(crate) fn vectorize(self, operation: impl pulp::WithSimd<Output = ()>) {
            use pulp::Simd;

            match self {
                Processor::Plain => Simd::vectorize(pulp::Scalar128b, operation),
                Processor::Avx2(simd) => Simd::vectorize(simd, operation),
                Processor::Avx512(simd) => Simd::vectorize(simd, operation),
            }
        }

        /// Returns the instruction set.
        pub(in super::super) fn set(self) -> InstructionSet {
            match self {
                Processor::Plain => InstructionSet::Plain,
                Processor::Avx2(_) => InstructionSet::Avx2,
                Processor::Avx512(_) => InstructionSet::Avx512,
            }
        }
    }

    pub(super) fn arch(set: InstructionSet) -> pulp::Arch {
        match set {
            InstructionSet::Plain => pulp::Arch::Scalar,
            InstructionSet::Avx2 => V3::try_new().map_or(pulp::Arch::Scalar, pulp::Arch::V3),
            InstructionSet::Avx512 | InstructionSet::AmxBf16 => pulp::Arch::new(),
        }
    }

    pub(super) fn has_avx2() -> bool {
        V3::try_new().is_some()
    }

    pub(super) fn has_avx512() -> bool {
        V4::try_new().is_some()
    }

    pub(super) fn avx2() -> Processor {
        Processor::Avx2(V3::try_new().expect("panels are laid out for what the processor has"))
    }

    pub(super) fn avx512() -> Processor {
        Processor::Avx512(V4::try_new().expect("panels are laid out for what the processor has"))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod processor {
    use super::{FewRows, FullVectors, InstructionSet, RowSource, TileOfWidth};

    /// An instruction set that the processor has.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Processor {
        Plain,
    }

    impl Processor {
        /// Makes a tile.
        pub(in super::super) fn run<R: RowSource, const N_VECTORS: usize>(
            self,
            tile: TileOfWidth<'_, R, N_VECTORS>,
        ) {
            tile.with_few(FullVectors(pulp::Scalar128b));
        }

        /// Makes a tile of half a vector, of which this processor has none.
        pub(in super::super) fn run_half<R: RowSource>(self, tile: TileOfWidth<'_, R, 1>) {
            self.run(tile);
        }

        /// Multiplies few rows.
        pub(in super::super) fn run_few(self, few: FewRows<'_>) {
            few.with(FullVectors(pulp::Scalar128b));
        }

        /// Runs an operation on vectors.
        pub(crate) fn vectorize(self, operation: impl pulp::WithSimd<Output = ()>) {
            pulp::Simd::vectorize(pulp::Scalar128b, operation);
        }

        /// Returns the instruction set.
        pub(in super::super) fn set(self) -> InstructionSet {
            InstructionSet::Plain
        }
    }

    pub(super) fn arch(_: InstructionSet) -> pulp::Arch {
        pulp::Arch::new()
    }

    pub(super) fn has_avx2() -> bool {
        false
    }

    pub(super) fn has_avx512() -> bool {
        false
    }

    pub(super) fn avx2() -> Processor {
        unreachable!("panels are laid out for what the processor has")
    }

    pub(super) fn avx512() -> Processor {
        unreachable!("panels are laid out for what the processor has")
    }
}
