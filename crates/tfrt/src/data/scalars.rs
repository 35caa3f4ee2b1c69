//! [`Scalar`]: one element of a tensor of any type, for code that shows elements one by one.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::{Number, Value as Json};
use tfrt::Error;
use tfrt::kernel::{BF16, Complex, F16};
use tfrt::tensor::subbyte::SubbyteType;
use tfrt::tensor::{Bool, Element, Quantized, Small, Tensor, with_element};

/// One element of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Truth(bool),
    Integer(i128),
    /// A float of 32 bits or less, whose shortest digits are other ones than those of 64 bits.
    Single(f32),
    Double(f64),
    Complex(f64, f64),
    Text(Vec<u8>),
}

impl Scalar {
    /// Returns the element as JSON; numbers that JSON does not have are strings.
    pub fn to_json(&self) -> Json {
        let float = |number: Option<Number>| {
            number.map_or_else(|| Json::from(self.to_string()), Json::Number)
        };
        match self {
            Scalar::Truth(bit) => Json::from(*bit),
            Scalar::Integer(integer) => match (i64::try_from(*integer), u64::try_from(*integer)) {
                (Ok(integer), _) => Json::from(integer),
                (_, Ok(integer)) => Json::from(integer),
                _ => Json::from(integer.to_string()),
            },
            // By its own digits, so that 0.1 is not 0.10000000149011612.
            Scalar::Single(_) => {
                let digits = self.to_string().parse().ok();
                float(digits.and_then(Number::from_f64))
            }
            Scalar::Double(number) => float(Number::from_f64(*number)),
            Scalar::Complex(real, imaginary) => Json::from(vec![
                Scalar::Double(*real).to_json(),
                Scalar::Double(*imaginary).to_json(),
            ]),
            Scalar::Text(bytes) => Json::from(String::from_utf8_lossy(bytes)),
        }
    }

    /// Returns the number, if the element is a real one.
    pub fn number(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "it is shown, or compared")]
            Scalar::Integer(integer) => Some(*integer as f64),
            Scalar::Single(number) => Some(f64::from(*number)),
            Scalar::Double(number) => Some(*number),
            Scalar::Truth(_) | Scalar::Complex(..) | Scalar::Text(_) => None,
        }
    }
}

/// Writes as many digits as tell the number from its neighbours.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Truth(bit) => bit.fmt(f),
            Scalar::Integer(integer) => integer.fmt(f),
            Scalar::Single(number) => f.write_str(&digits(number, number.abs().into())),
            Scalar::Double(number) => f.write_str(&digits(number, number.abs())),
            Scalar::Complex(real, imaginary) => {
                let (real, imaginary) = (Scalar::Double(*real), Scalar::Double(*imaginary));
                write!(f, "({real}, {imaginary})")
            }
            Scalar::Text(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

/// Returns the digits of a number. Large and small ones have an exponent; infinities and NaN have
/// the names of NumPy.
fn digits(number: &(impl fmt::Display + fmt::LowerExp), size: f64) -> Cow<'static, str> {
    if size.is_nan() {
        return "nan".into();
    }
    if size != 0.0 && !(1e-5..1e16).contains(&size) {
        return format!("{number:e}").into();
    }
    format!("{number}").into()
}

/// An element that can be converted to a [`Scalar`].
trait ToScalar: Element {
    fn cell(self) -> Scalar;
}

/// `shown!(u8 => |value| Scalar::Integer(value.into()))` implements [`ToScalar`] for `u8`.
macro_rules! shown {
    ($($type:ty => |$value:ident| $cell:expr;)*) => {$(
        impl ToScalar for $type {
            fn cell(self) -> Scalar {
                let $value = self;
                $cell
            }
        }
    )*};
}

shown! {
    u8 => |value| Scalar::Integer(value.into());
    u16 => |value| Scalar::Integer(value.into());
    u32 => |value| Scalar::Integer(value.into());
    u64 => |value| Scalar::Integer(value.into());
    i8 => |value| Scalar::Integer(value.into());
    i16 => |value| Scalar::Integer(value.into());
    i32 => |value| Scalar::Integer(value.into());
    i64 => |value| Scalar::Integer(value.into());
    f32 => |value| Scalar::Single(value);
    f64 => |value| Scalar::Double(value);
    Bool => |value| Scalar::Truth(value.into());
    F16 => |value| Scalar::Single(half::f16::from_bits(value.0).to_f32());
    BF16 => |value| Scalar::Single(half::bf16::from_bits(value.0).to_f32());
    Complex<f32> => |value| Scalar::Complex(value.real.into(), value.imaginary.into());
    Complex<f64> => |value| Scalar::Complex(value.real, value.imaginary);
    Quantized<u8> => |value| Scalar::Integer(value.0.into());
    Quantized<u16> => |value| Scalar::Integer(value.0.into());
    Quantized<i8> => |value| Scalar::Integer(value.0.into());
    Quantized<i16> => |value| Scalar::Integer(value.0.into());
    Quantized<i32> => |value| Scalar::Integer(value.0.into());
}

impl<const INDEX: usize> ToScalar for Small<INDEX>
where
    Small<INDEX>: Element,
{
    fn cell(self) -> Scalar {
        let Some(small) = SubbyteType::of_dtype(Self::DTYPE) else {
            return Scalar::Single(f32::NAN);
        };
        let number = small.decode(self.0);
        match small.is_integer() {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "it is an integer from -8 to 15"
            )]
            true => Scalar::Integer(i128::from(number as i8)),
            false => Scalar::Single(number),
        }
    }
}

/// Returns some elements of a tensor, by their places in a row.
///
/// # Errors
///
/// If the tensor is not dense, or somebody writes it.
pub fn scalars(tensor: &Tensor, range: Range<usize>) -> Result<Vec<Scalar>, Error> {
    if let Tensor::String(strings) = tensor {
        let strings = strings.strings().get(range).unwrap_or_default();
        return Ok(strings.iter().cloned().map(Scalar::Text).collect());
    }
    let dense = tensor.as_dense()?;
    let reading = dense.read()?;
    with_element!(dense.dtype(), T => {
        let elements = reading.elements::<T>()?.get(range).unwrap_or_default();
        Ok(elements.iter().map(|element| element.cell()).collect())
    }, else Ok(Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_shown_by_their_own_digits() {
        assert_eq!(Scalar::Single(0.1).to_json().to_string(), "0.1");
        assert_eq!(Scalar::Single(1e-30).to_string(), "1e-30");
        assert_eq!(
            Scalar::Double(f64::NEG_INFINITY).to_json(),
            Json::from("-inf")
        );
        assert_eq!(Scalar::Single(f32::NAN).to_json(), Json::from("nan"));
        assert_eq!(
            Scalar::Integer(u64::MAX.into()).to_json(),
            Json::from(u64::MAX)
        );
    }
}
