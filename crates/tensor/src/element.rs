//! [`Element`]: the Rust types that tensors hold, and bytes seen as elements.
//!
//! | Type | [`DType`] | Type | [`DType`] |
//! | --- | --- | --- | --- |
//! | `u8` `u16` `u32` `u64` | `Ui8`... | [`F16`], [`BF16`] | `F16`, `Bf16` |
//! | `i8` `i16` `i32` `i64` | `I8`... | [`Complex<f32>`], [`Complex<f64>`] | `Complex64`, `Complex128` |
//! | [`Bool`] | `I1` | [`Quantized<u8>`]... | `Quint8`... |
//! | `f32` `f64` | `F32` `F64` | [`Small<0>`](Small)... | `I4`... |
//!
//! Strings are no elements: they have a size each
//! ([`StringHostTensor`](crate::StringHostTensor)).

use std::fmt;

use tfrt_host::kernel::{BF16, Complex, F16};
use tfrt_host::{DType, Error};

use crate::subbyte::{Overflow, SubbyteType};
use crate::text;

/// A truth value as tensors hold it: a byte, of which any but 0 is true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Bool(u8);

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> bool {
        value.0 != 0
    }
}

/// Truth values are the same if both are true, whatever their bytes.
impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        bool::from(*self) == bool::from(*other)
    }
}

impl Eq for Bool {}

/// A quantized number: an integer whose scale and zero point are known elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Quantized<T>(pub T);

/// A number of the type `SubbyteType::ALL[TYPE]`: its code, in the low bits of a byte.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{I4, Small};
///
/// assert_eq!(I4::of(-1.0), Small(0xf));
/// assert_eq!(Small::<0>(0xf).to_f32(), -1.0);
/// ```
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Small<const TYPE: usize>(pub u8);

impl<const TYPE: usize> Small<TYPE> {
    /// The sub-byte type of this number.
    pub const COMPACT: SubbyteType = SubbyteType::ALL[TYPE];

    /// Returns the nearest number of the type; the largest one for larger numbers.
    pub fn of(value: f32) -> Self {
        Small(Self::COMPACT.encode(value, Overflow::Saturate))
    }

    /// Returns the number.
    pub fn to_f32(self) -> f32 {
        Self::COMPACT.decode(self.0)
    }

    fn code(self) -> u8 {
        self.0 & (u8::MAX >> (8 - Self::COMPACT.n_bits()))
    }
}

/// Compares codes; of codes below 8 bits the upper bits are ignored.
impl<const TYPE: usize> PartialEq for Small<TYPE> {
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
    }
}

impl<const TYPE: usize> Eq for Small<TYPE> {}

impl<const TYPE: usize> fmt::Debug for Small<TYPE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", Self::DTYPE, self.to_f32())
    }
}

// SAFETY: a transparent byte, any bits of which are a value; the size and alignment of all small types are 1,
// as `DType` says of every one.
unsafe impl<const TYPE: usize> Element for Small<TYPE> {
    const DTYPE: DType = Self::COMPACT.dtype();
    // Of powers of two it is the least.
    const ZERO: Self = Small(0);

    fn print(self, f: &mut dyn fmt::Write) -> fmt::Result {
        match Self::COMPACT.is_integer() {
            true => write!(f, "{}", self.to_f32()),
            false => text::exponential(self.to_f32().into(), f),
        }
    }
}

/// `small!(I4 0, Ui4 1)` names the small types, and asserts that they have these numbers.
macro_rules! small {
    ($($name:ident $index:literal $doc:literal,)*) => {$(
        #[doc = $doc]
        pub type $name = Small<$index>;

        const _: () = {
            assert!(matches!(<$name as Element>::DTYPE, DType::$name));
            assert!(matches!(DType::$name.size_bytes(), Some(1)));
        };
    )*};
}

small! {
    I4 0 "An integer from -8 to 7.",
    Ui4 1 "An integer from 0 to 15.",
    F8E4M3FN 2 "A float of 8 bits, 3 of them mantissa, without infinities.",
    F8E4M3FNUZ 3 "A float of 8 bits, 3 of them mantissa, without infinities and -0.",
    F8E5M2 4 "A float of 8 bits, 2 of them mantissa.",
    F8E5M2FNUZ 5 "A float of 8 bits, 2 of them mantissa, without infinities and -0.",
    F8E8M0 6 "A power of two.",
    F4E2M1 7 "A float of 4 bits, 1 of them mantissa.",
    I2 8 "An integer from -2 to 1.",
    Ui2 9 "An integer from 0 to 3.",
    F8E3M4 10 "A float of 8 bits, 4 of them mantissa.",
    F8E4M3 11 "A float of 8 bits, 3 of them mantissa.",
    F8E4M3B11FNUZ 12 "A float of 8 bits, 3 of them mantissa, of bias 11, without infinities and -0.",
    F6E2M3 13 "A float of 6 bits, 3 of them mantissa.",
    F6E3M2 14 "A float of 6 bits, 2 of them mantissa.",
}

/// A type of elements of dense tensors.
///
/// # Safety
///
/// Bytes are read as elements and elements as bytes: the type has no padding, any bits are a value of
/// it, and its size and alignment are those of [`DTYPE`](Element::DTYPE).
pub unsafe trait Element: Copy + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Number of the type in programs and files.
    const DTYPE: DType;
    /// The number 0, or false: the element of zeroed memory.
    const ZERO: Self;

    /// Writes the element as tensors are printed.
    ///
    /// # Errors
    ///
    /// Those of `f`.
    fn print(self, f: &mut dyn fmt::Write) -> fmt::Result;
}

/// `elements!(u8 Ui8 0 => decimal)` implements [`Element`] for `u8`, of `DType::Ui8`, whose zero is 0 and
/// which `text::decimal` prints.
macro_rules! elements {
    ($($type:ty, $dtype:ident, $zero:expr => $print:expr;)*) => {$(
        const _: () = {
            let (size, alignment) = (size_of::<$type>(), align_of::<$type>());
            assert!(matches!(DType::$dtype.size_bytes(), Some(bytes) if bytes == size));
            assert!(matches!(DType::$dtype.alignment_bytes(), Some(bytes) if bytes == alignment));
        };

        // SAFETY: numbers, and transparent or C structures of one or two equal numbers: no padding, any
        // bits are a value. Size and alignment are asserted above.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            const ZERO: Self = $zero;

            fn print(self, f: &mut dyn fmt::Write) -> fmt::Result {
                let print: fn($type, &mut dyn fmt::Write) -> fmt::Result = $print;
                print(self, f)
            }
        }
    )*};
}

elements! {
    u8, Ui8, 0 => |value, f| write!(f, "{value}");
    u16, Ui16, 0 => |value, f| write!(f, "{value}");
    u32, Ui32, 0 => |value, f| write!(f, "{value}");
    u64, Ui64, 0 => |value, f| write!(f, "{value}");
    i8, I8, 0 => |value, f| write!(f, "{value}");
    i16, I16, 0 => |value, f| write!(f, "{value}");
    i32, I32, 0 => |value, f| write!(f, "{value}");
    i64, I64, 0 => |value, f| write!(f, "{value}");
    f32, F32, 0.0 => |value, f| text::exponential(value.into(), f);
    f64, F64, 0.0 => |value, f| text::exponential(value, f);
    Bool, I1, Bool(0) => |value, f| write!(f, "{}", u8::from(bool::from(value)));
    F16, F16, F16(0) => |value, f| write!(f, "fp16({})", value.0);
    BF16, Bf16, BF16(0) => |value, f| write!(f, "bf16({})", value.0);
    Complex<f32>, Complex64, Complex { real: 0.0, imaginary: 0.0 } =>
        |value, f| text::complex(value.real.into(), value.imaginary.into(), f);
    Complex<f64>, Complex128, Complex { real: 0.0, imaginary: 0.0 } =>
        |value, f| text::complex(value.real, value.imaginary, f);
    Quantized<u8>, Quint8, Quantized(0) => |value, f| write!(f, "qu8({})", value.0);
    Quantized<u16>, Quint16, Quantized(0) => |value, f| write!(f, "qu16({})", value.0);
    Quantized<i8>, Qint8, Quantized(0) => |value, f| write!(f, "qi8({})", value.0);
    Quantized<i16>, Qint16, Quantized(0) => |value, f| write!(f, "qi16({})", value.0);
    Quantized<i32>, Qint32, Quantized(0) => |value, f| write!(f, "qi32({})", value.0);
}

/// Expands `body` for the Rust type of a [`DType`]: `with_element!(dtype, T => body, else other)`, where `body` may
/// use the type `T`, and `other` is for types without elements of one size.
///
/// # Examples
///
/// ```
/// use tfrt_host::DType;
/// use tfrt_tensor::with_element;
///
/// let size = |dtype| with_element!(dtype, T => size_of::<T>(), else 0);
/// assert_eq!(size(DType::Complex64), 8);
/// assert_eq!(size(DType::String), 0);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {{
        // Expands to `match dtype { DType::Ui8 => { type T = u8; body } ... }`.
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
            $crate::DType::I1 => arm!($crate::Bool),
            $crate::DType::I8 => arm!(i8),
            $crate::DType::I16 => arm!(i16),
            $crate::DType::I32 => arm!(i32),
            $crate::DType::I64 => arm!(i64),
            $crate::DType::F32 => arm!(f32),
            $crate::DType::F64 => arm!(f64),
            $crate::DType::Complex64 => arm!($crate::Complex<f32>),
            $crate::DType::Complex128 => arm!($crate::Complex<f64>),
            $crate::DType::F16 => arm!($crate::F16),
            $crate::DType::Bf16 => arm!($crate::BF16),
            $crate::DType::Quint8 => arm!($crate::Quantized<u8>),
            $crate::DType::Quint16 => arm!($crate::Quantized<u16>),
            $crate::DType::Qint8 => arm!($crate::Quantized<i8>),
            $crate::DType::Qint16 => arm!($crate::Quantized<i16>),
            $crate::DType::Qint32 => arm!($crate::Quantized<i32>),
            $crate::DType::I4 => arm!($crate::I4),
            $crate::DType::Ui4 => arm!($crate::Ui4),
            $crate::DType::F8E4M3FN => arm!($crate::F8E4M3FN),
            $crate::DType::F8E4M3FNUZ => arm!($crate::F8E4M3FNUZ),
            $crate::DType::F8E5M2 => arm!($crate::F8E5M2),
            $crate::DType::F8E5M2FNUZ => arm!($crate::F8E5M2FNUZ),
            $crate::DType::F8E8M0 => arm!($crate::F8E8M0),
            $crate::DType::F4E2M1 => arm!($crate::F4E2M1),
            $crate::DType::F8E3M4 => arm!($crate::F8E3M4),
            $crate::DType::F8E4M3 => arm!($crate::F8E4M3),
            $crate::DType::F8E4M3B11FNUZ => arm!($crate::F8E4M3B11FNUZ),
            $crate::DType::F6E2M3 => arm!($crate::F6E2M3),
            $crate::DType::F6E3M2 => arm!($crate::F6E3M2),
            $crate::DType::I2 => arm!($crate::I2),
            $crate::DType::Ui2 => arm!($crate::Ui2),
            $crate::DType::String | $crate::DType::Resource | $crate::DType::Variant => $other,
        }
    }};
}

/// Casts bytes to elements.
///
/// # Errors
///
/// `InvalidArgument` if they don't begin where such an element may, or end within one.
#[inline]
pub fn from_bytes<T: Element>(bytes: &[u8]) -> Result<&[T], Error> {
    let n_elements = checked_len::<T>(bytes)?;
    // SAFETY: any bits are a `T` (`Element`), the address is aligned and so many lie in the bytes, as was
    // just checked; the result borrows them.
    Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), n_elements) })
}

/// Casts bytes to elements that may be changed.
///
/// # Errors
///
/// See [`from_bytes`].
#[inline]
pub fn from_bytes_mut<T: Element>(bytes: &mut [u8]) -> Result<&mut [T], Error> {
    let n_elements = checked_len::<T>(bytes)?;
    // SAFETY: as in `from_bytes`; whatever is written there is initialised bytes, since a `T` has no
    // padding (`Element`).
    Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), n_elements) })
}

/// Casts elements to their bytes, in the order of the processor.
pub fn to_bytes<T: Element>(elements: &[T]) -> &[u8] {
    let len_bytes = size_of_val(elements);
    // SAFETY: a `T` has no padding (`Element`), so all bytes are initialised; the result borrows them.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), len_bytes) }
}

/// Casts elements to bytes that may be changed.
pub fn to_bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    let len_bytes = size_of_val(elements);
    // SAFETY: as in `to_bytes`; whatever is written there is a `T`, since any bits are one (`Element`).
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), len_bytes) }
}

#[inline]
fn checked_len<T: Element>(bytes: &[impl Copy]) -> Result<usize, Error> {
    let (address, len_bytes) = (bytes.as_ptr().addr(), size_of_val(bytes));
    if address.is_multiple_of(align_of::<T>()) && len_bytes.is_multiple_of(size_of::<T>()) {
        return Ok(len_bytes / size_of::<T>());
    }
    Err(misfit(address, len_bytes, T::DTYPE))
}

#[cold]
fn misfit(address: usize, len: usize, dtype: DType) -> Error {
    let size = dtype.size_bytes().unwrap_or(1);
    let message = match len.is_multiple_of(size) {
        false => format!("{len} bytes are no whole number of {dtype} elements of {size} bytes"),
        true => {
            let alignment = dtype.alignment_bytes().unwrap_or(1);
            format!(
                "{dtype} elements begin at multiples of {alignment} bytes in memory, these {} bytes \
                 behind one",
                address % alignment
            )
        }
    };
    Error::invalid_argument(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_elements_if_they_fit() {
        let words = [0x0403_0201_u32, 0x0807_0605];
        let bytes = to_bytes(&words);
        assert_eq!(from_bytes::<u32>(bytes).unwrap(), words);
        assert_eq!(from_bytes::<Quantized<u8>>(bytes).unwrap()[3], Quantized(4));
        let short = from_bytes::<u32>(&bytes[..7]).unwrap_err();
        assert_eq!(
            short.message(),
            "7 bytes are no whole number of i32 elements of 4 bytes".replace("i32", "u32")
        );
        let crooked = from_bytes::<u16>(&bytes[1..3]).unwrap_err();
        assert!(crooked.message().contains("1 bytes behind"), "{crooked}");
        assert_eq!(from_bytes::<u64>(&[]).map(<[u64]>::len).unwrap_or(0), 0);
    }

    #[test]
    fn any_byte_but_zero_is_true() {
        let values: &[Bool] = from_bytes(&[0, 1, 255]).unwrap();
        let values: Vec<bool> = values.iter().copied().map(bool::from).collect();
        assert_eq!(values, [false, true, true]);
    }
}
