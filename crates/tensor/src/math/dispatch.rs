//! From types of elements to Rust types: the families of numbers. [`with_element!`](crate::with_element) is for all
//! types.

/// Does something for the Rust type of a float: `with_floating!(dtype, T => body, else other)`.
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

/// Does something for the Rust type of an integer.
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

/// Does something for the Rust type of a real number: a float or an integer.
#[macro_export]
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::with_floating!($dtype, $T => $body, else
            $crate::with_integer!($dtype, $T => $body, else $other))
    };
}

/// Does something for the Rust type of a number: also of a complex one.
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
