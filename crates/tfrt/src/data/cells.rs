//! [`Cell`]: one element of a tensor of any type, for those who show elements one by one.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::{Number, Value as Json};
use tfrt::Error;
use tfrt::kernel::{BF16, Complex, F16};
use tfrt::tensor::subbyte::SubbyteType;
use tfrt::tensor::{Bool, Element, Quantized, Small, Tensor, with_element};

/// An element, as its type has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Truth(bool),
    Integer(i128),
    /// Floats of 32 bits and less: their shortest digits are other ones than those of 64 bits.
    Single(f32),
    Double(f64),
    Complex(f64, f64),
    Text(Vec<u8>),
}

impl Cell {
    /// As JSON: what is no number there is a string.
    pub fn to_json(&self) -> Json {
        let float = |number: Option<Number>| {
            number.map_or_else(|| Json::from(self.to_string()), Json::Number)
        };
        match self {
            Cell::Truth(bit) => Json::from(*bit),
            Cell::Integer(integer) => match (i64::try_from(*integer), u64::try_from(*integer)) {
                (Ok(integer), _) => Json::from(integer),
                (_, Ok(integer)) => Json::from(integer),
                _ => Json::from(integer.to_string()),
            },
            // By its own digits, so that 0.1 is not 0.10000000149011612.
            Cell::Single(_) => {
                let digits = self.to_string().parse().ok();
                float(digits.and_then(Number::from_f64))
            }
            Cell::Double(number) => float(Number::from_f64(*number)),
            Cell::Complex(real, imaginary) => Json::from(vec![
                Cell::Double(*real).to_json(),
                Cell::Double(*imaginary).to_json(),
            ]),
            Cell::Text(bytes) => Json::from(String::from_utf8_lossy(bytes)),
        }
    }

    /// The number that it is, if it is a real one.
    pub fn number(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "it is shown, or compared")]
            Cell::Integer(integer) => Some(*integer as f64),
            Cell::Single(number) => Some(f64::from(*number)),
            Cell::Double(number) => Some(*number),
            Cell::Truth(_) | Cell::Complex(..) | Cell::Text(_) => None,
        }
    }
}

/// With as many digits as tell it from its neighbours.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Truth(bit) => bit.fmt(f),
            Cell::Integer(integer) => integer.fmt(f),
            Cell::Single(number) => f.write_str(&digits(number, number.abs().into())),
            Cell::Double(number) => f.write_str(&digits(number, number.abs())),
            Cell::Complex(real, imaginary) => {
                let (real, imaginary) = (Cell::Double(*real), Cell::Double(*imaginary));
                write!(f, "({real}, {imaginary})")
            }
            Cell::Text(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

/// Large and small numbers have an exponent; those that are none are called by the names of NumPy.
fn digits(number: &(impl fmt::Display + fmt::LowerExp), size: f64) -> Cow<'static, str> {
    if size.is_nan() {
        return "nan".into();
    }
    if size != 0.0 && !(1e-5..1e16).contains(&size) {
        return format!("{number:e}").into();
    }
    format!("{number}").into()
}

/// Elements that can be shown.
trait Shown: Element {
    fn cell(self) -> Cell;
}

/// `shown!(u8 => |value| Cell::Integer(value.into()))` implements [`Shown`] for `u8`.
macro_rules! shown {
    ($($type:ty => |$value:ident| $cell:expr;)*) => {$(
        impl Shown for $type {
            fn cell(self) -> Cell {
                let $value = self;
                $cell
            }
        }
    )*};
}

shown! {
    u8 => |value| Cell::Integer(value.into());
    u16 => |value| Cell::Integer(value.into());
    u32 => |value| Cell::Integer(value.into());
    u64 => |value| Cell::Integer(value.into());
    i8 => |value| Cell::Integer(value.into());
    i16 => |value| Cell::Integer(value.into());
    i32 => |value| Cell::Integer(value.into());
    i64 => |value| Cell::Integer(value.into());
    f32 => |value| Cell::Single(value);
    f64 => |value| Cell::Double(value);
    Bool => |value| Cell::Truth(value.into());
    F16 => |value| Cell::Single(half::f16::from_bits(value.0).to_f32());
    BF16 => |value| Cell::Single(half::bf16::from_bits(value.0).to_f32());
    Complex<f32> => |value| Cell::Complex(value.real.into(), value.imaginary.into());
    Complex<f64> => |value| Cell::Complex(value.real, value.imaginary);
    Quantized<u8> => |value| Cell::Integer(value.0.into());
    Quantized<u16> => |value| Cell::Integer(value.0.into());
    Quantized<i8> => |value| Cell::Integer(value.0.into());
    Quantized<i16> => |value| Cell::Integer(value.0.into());
    Quantized<i32> => |value| Cell::Integer(value.0.into());
}

impl<const INDEX: usize> Shown for Small<INDEX>
where
    Small<INDEX>: Element,
{
    fn cell(self) -> Cell {
        let Some(small) = SubbyteType::of_dtype(Self::DTYPE) else {
            return Cell::Single(f32::NAN);
        };
        let number = small.decode(self.0);
        match small.is_integer() {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "it is an integer from -8 to 15"
            )]
            true => Cell::Integer(i128::from(number as i8)),
            false => Cell::Single(number),
        }
    }
}

/// Returns some elements of a tensor, by their places in a row.
///
/// # Errors
///
/// If the tensor is not dense, or somebody writes it.
pub fn cells(tensor: &Tensor, range: Range<usize>) -> Result<Vec<Cell>, Error> {
    if let Tensor::String(strings) = tensor {
        let strings = strings.strings().get(range).unwrap_or_default();
        return Ok(strings.iter().cloned().map(Cell::Text).collect());
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
        assert_eq!(Cell::Single(0.1).to_json().to_string(), "0.1");
        assert_eq!(Cell::Single(1e-30).to_string(), "1e-30");
        assert_eq!(
            Cell::Double(f64::NEG_INFINITY).to_json(),
            Json::from("-inf")
        );
        assert_eq!(Cell::Single(f32::NAN).to_json(), Json::from("nan"));
        assert_eq!(
            Cell::Integer(u64::MAX.into()).to_json(),
            Json::from(u64::MAX)
        );
    }
}
