//! The binary tensor format (BTF): files of tensors, each found by its offset.
//!
//! ```text
//! file    := u64 n_tensors, u64 offset[n_tensors], record*
//! record  := u64 rank, u8 dtype, u8 layout, 6 bytes of 0, payload, 0s up to a multiple of 8 bytes
//! payload := dense                       if the layout is dense
//!          | u64 extent[rank], indices: dense, values: dense
//!                                        if it is sparse; indices are i64 [n, rank], values [n]
//! dense   := u64 extent[rank], elements in row-major order
//! ```
//!
//! Integers are little-endian, and so are elements. A file is input like any other: what it says is
//! compared with how long it is before memory is taken, so that a damaged one costs an error and no
//! more memory than it has bytes. The 0s behind the last record may be missing, bytes between records
//! are not looked at, and the 6 bytes of 0 may be anything.

use std::fmt;

use tfrt_host::DType;

mod read;
mod write;

pub use read::BtfReader;
pub use write::write;

/// The first part of a record.
const HEADER_BYTES: u64 = 16;

/// Alignment of records and payloads.
const ALIGNMENT_BYTES: u64 = 8;

/// Header of a record: rank, type and layout of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtfHeader {
    /// The number of dimensions.
    pub rank: u64,
    /// The type of the elements.
    pub dtype: BtfDType,
    /// Layout of the elements.
    pub layout: BtfLayout,
}

/// Number of a type of elements in a file. Any number may stand in a file.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{DType, btf::BtfDType};
///
/// assert_eq!(BtfDType(7).to_string(), "ui16");
/// assert_eq!(BtfDType(7).dtype(), Some(DType::Ui16));
/// assert_eq!(BtfDType(10).to_string(), "BadDtype(10)");
/// assert_eq!(BtfDType::of(DType::Bf16), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtfDType(pub u8);

/// The types that the format has, each at the place that is its number.
const DTYPES: [DType; 10] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F32,
    DType::F64,
    DType::Ui8,
    DType::Ui16,
    DType::Ui32,
    DType::Ui64,
];

impl BtfDType {
    /// Returns the number of a type, if the format has it.
    pub fn of(dtype: DType) -> Option<BtfDType> {
        let index = DTYPES.iter().position(|known| *known == dtype)?;
        u8::try_from(index).ok().map(BtfDType)
    }

    /// Returns the type, if there is one of this number.
    pub fn dtype(self) -> Option<DType> {
        DTYPES.get(usize::from(self.0)).copied()
    }
}

/// `i32`, `ui8`, `BadDtype(10)`
impl fmt::Display for BtfDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype() {
            Some(dtype) => f.write_str(dtype.mlir_name()),
            None => write!(f, "BadDtype({})", self.0),
        }
    }
}

/// Number of a layout of elements in a file. Any number may stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtfLayout(pub u8);

impl BtfLayout {
    /// All elements in row-major order.
    pub const DENSE: BtfLayout = BtfLayout(0);
    /// Coordinates and values.
    pub const COO: BtfLayout = BtfLayout(1);
}

/// Prints the name that TFRT's C++ implementation uses.
impl fmt::Display for BtfLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            BtfLayout::DENSE => "Row-Major Dense tensor",
            BtfLayout::COO => "COOrdinate list sparse tensor",
            BtfLayout(_) => "Unknown",
        })
    }
}

/// Swaps the bytes of elements on processors with another byte order than files.
fn swap_to_native(bytes: &mut [u8], dtype: DType) {
    if cfg!(target_endian = "big") {
        let size = dtype.size_bytes().unwrap_or(1);
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}
