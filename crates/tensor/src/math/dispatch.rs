//! Macros that expand code for the Rust type of a [`DType`], by families of numbers.
//! [`with_element!`](crate::with_element) is for all types.

use tfrt_host::{DType, Error};

/// A family of element types that arithmetic is defined for.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::DType;
/// use tfrt_tensor::math::Family;
///
/// assert!(Family::Floats.has(DType::Bf16) && Family::Reals.has(DType::I8));
/// assert!(!Family::Reals.has(DType::Complex64) && !Family::Numbers.has(DType::I1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Floats of 16, 32 and 64 bits.
    Floats,
    /// Integers of 8 to 64 bits.
    Integers,
    /// Floats and integers.
    Reals,
    /// Real and complex numbers.
    Numbers,
}

impl Family {
    /// Returns whether a type is one of the family.
    pub fn has(self, dtype: DType) -> bool {
        let is_float = matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64);
        match self {
            Family::Floats => is_float,
            Family::Integers => dtype.is_integer(),
            Family::Reals => is_float || dtype.is_integer(),
            Family::Numbers => {
                is_float
                    || dtype.is_integer()
                    || matches!(dtype, DType::Complex64 | DType::Complex128)
            }
        }
    }

    /// Returns an error about a tensor of a type that is none of the family.
    #[cold]
    pub(crate) fn lacks(self, dtype: DType) -> Error {
        let wanted = match self {
            Family::Floats => "floats",
            Family::Integers => "integers",
            Family::Reals => "real numbers",
            Family::Numbers => "numbers",
        };
        Error::invalid_argument(format!("expected a tensor of {wanted}, found {dtype}"))
    }
}

/// Expands `body` for the Rust type of a float: `with_floating!(dtype, T => body, else other)`.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{DType, with_floating};
///
/// let digits = |dtype| with_floating!(dtype, T => std::any::type_name::<T>(), else "none");
/// assert_eq!((digits(DType::F64), digits(DType::I32)), ("f64", "none"));
/// ```
#[macro_export]
macro_rules! with_floating {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {{
        // Expands to `match dtype { DType::F32 => { type T = f32; body } ... }`.
        macro_rules! arm {
            ($type:ty) => {{
                type $T = $type;
                $body
            }};
        }
        match $dtype {
            $crate::DType::F32 => arm!(f32),
            $crate::DType::F64 => arm!(f64),
            $crate::DType::F16 => arm!($crate::F16),
            $crate::DType::Bf16 => arm!($crate::BF16),
            _ => $other,
        }
    }};
}

/// Expands `body` for the Rust type of an integer.
#[macro_export]
macro_rules! with_integer {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {{
        macro_rules! arm {
            ($type:ty) => {{
                type $T = $type;
                $body
            }};
        }
        match $dtype {
            $crate::DType::Ui8 => arm!(u8),
            $crate::DType::Ui16 => arm!(u16),
            $crate::DType::Ui32 => arm!(u32),
            $crate::DType::Ui64 => arm!(u64),
            $crate::DType::I8 => arm!(i8),
            $crate::DType::I16 => arm!(i16),
            $crate::DType::I32 => arm!(i32),
            $crate::DType::I64 => arm!(i64),
            _ => $other,
        }
    }};
}

/// Expands `body` for the Rust type of a real number: a float or an integer.
#[macro_export]
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::with_floating!($dtype, $T => $body, else
            $crate::with_integer!($dtype, $T => $body, else $other))
    };
}

/// Expands `body` for the Rust type of a number, complex ones included.
#[macro_export]
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            $crate::DType::Complex64 => {
                type $T = $crate::Complex<f32>;
                $body
            }
            $crate::DType::Complex128 => {
                type $T = $crate::Complex<f64>;
                $body
            }
            other => $crate::with_real!(other, $T => $body, else $other),
        }
    };
}
