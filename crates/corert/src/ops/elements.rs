//! [`Elements`]: which types of elements operations calculate with.

use tfrt_host::{DType, Error};

use crate::definition::unsupported;

/// A family of types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// `f32`.
    Single,
    /// And `f64`.
    SingleOrDouble,
    /// Floats of any width.
    Floats,
    /// And integers.
    Reals,
    /// Real numbers, and truth values.
    RealsAndTruth,
    /// Real numbers, and complex ones.
    Numbers,
    /// Numbers, and truth values.
    NumbersAndTruth,
}

impl Elements {
    /// As the documentation has it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Elements::Single => "f32",
            Elements::SingleOrDouble => "f32, f64",
            Elements::Floats => "f16, bf16, f32, f64",
            Elements::Reals => "integers of 8 to 64 bits, f16, bf16, f32, f64",
            Elements::RealsAndTruth => "integers of 8 to 64 bits, f16, bf16, f32, f64, i1",
            Elements::Numbers => {
                "integers of 8 to 64 bits, f16, bf16, f32, f64, complex64, complex128"
            }
            Elements::NumbersAndTruth => {
                "integers of 8 to 64 bits, f16, bf16, f32, f64, complex64, complex128, i1"
            }
        }
    }

    /// Whether a type belongs to it.
    fn holds(self, dtype: DType) -> bool {
        let is_float = matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64);
        let is_complex = matches!(dtype, DType::Complex64 | DType::Complex128);
        match self {
            Elements::Single => dtype == DType::F32,
            Elements::SingleOrDouble => matches!(dtype, DType::F32 | DType::F64),
            Elements::Floats => is_float,
            Elements::Reals => is_float || dtype.is_integer(),
            Elements::RealsAndTruth => is_float || dtype.is_integer() || dtype == DType::I1,
            Elements::Numbers => is_float || dtype.is_integer() || is_complex,
            Elements::NumbersAndTruth => {
                is_float || dtype.is_integer() || is_complex || dtype == DType::I1
            }
        }
    }

    /// Tells whether an operation calculates with a type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it does not.
    #[inline]
    pub(super) fn expect(self, op: &str, dtype: DType) -> Result<(), Error> {
        match self.holds(dtype) {
            true => Ok(()),
            false => Err(unsupported(op, dtype).with_note(format!("it takes {}", self.text()))),
        }
    }
}
