//! Conversions between all types of elements but complex ones; small types and truth values are included.
//!
//! Integers to integers keep the low bits. Floats to integers are rounded towards 0 and to the range; of small
//! integers the low bits are kept then. All else is rounded to nearest, ties to even, once. Truth is 1, and what
//! is not 0 is true.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::elementwise::expect_same;
use super::number::Real;
use super::parallel;
use crate::subbyte::{Overflow, SubbyteType};
use crate::{BF16, Bool, DType, DenseHostTensor, F16, from_bytes, from_bytes_mut};

/// Rounding of a number to a power of two, for [`SubbyteType::F8E8M0`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerRounding {
    /// The next above.
    #[default]
    Up,
    /// The next below.
    Down,
    /// The nearest, of two as near the upper.
    Nearest,
}

/// Conversion of numbers that the target type can't represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Casting {
    /// Treatment of numbers above the largest of a small float.
    pub overflow: Overflow,
    /// Rounding of numbers between powers of two.
    pub powers: PowerRounding,
}

/// Number of elements that are converted at a time: they lie in the first cache.
pub(super) const STRETCH: usize = 512;
/// Elements that are few.
const FEW: usize = 32;

/// Converts the elements of a tensor to the type of another, on the workers of the request's queue if they are
/// many.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not, or if one is of complex numbers, and those of [`parallel::fill_bytes`].
pub fn cast_into(
    execution: &ExecutionContext,
    casting: Casting,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_same(x.shape(), out.shape())?;
    let (from, to) = (x.dtype(), out.dtype());
    for dtype in [from, to] {
        if !is_castable(dtype) {
            let message =
                format!("expected real numbers or truth values to convert, found {dtype}");
            return Err(Error::invalid_argument(message));
        }
    }
    let x = x.clone();
    let chunk = parallel::chunk_len(4, STRETCH);
    let (from_size, to_size) = (size(from), size(to));
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        let bytes = &reading.bytes()[first * from_size..];
        let n_elements = part.len() / to_size;
        let bytes = &bytes[..n_elements * from_size];
        let inputs = bytes.chunks(STRETCH * from_size);
        for (bytes, part) in inputs.zip(part.chunks_mut(STRETCH * to_size)) {
            convert(casting, (from, bytes), (to, part))?;
        }
        Ok(())
    })
}

/// Returns whether elements of a type can be converted.
pub fn is_castable(dtype: DType) -> bool {
    is_whole(dtype) || SubbyteType::of_dtype(dtype).is_some() || is_float(dtype)
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}

/// Returns whether elements are integers or truth values.
fn is_whole(dtype: DType) -> bool {
    let is_small = SubbyteType::of_dtype(dtype).is_some_and(SubbyteType::is_integer);
    dtype.is_integer() || dtype == DType::I1 || is_small
}

fn size(dtype: DType) -> usize {
    dtype.size_bytes().unwrap_or(1)
}

/// Converts elements from one type to another, both of which are [castable](is_castable).
pub(super) fn cast(from: DType, to: DType, x: &[u8], out: &mut [u8]) {
    let inputs = x.chunks(STRETCH * size(from));
    for (x, out) in inputs.zip(out.chunks_mut(STRETCH * size(to))) {
        let done = convert(Casting::default(), (from, x), (to, out));
        done.expect("elements of castable types lie where they may");
    }
}

/// Converts a stretch of elements.
fn convert(
    casting: Casting,
    (from, bytes): (DType, &[u8]),
    (to, out): (DType, &mut [u8]),
) -> Result<(), Error> {
    if from == to {
        out.copy_from_slice(bytes);
        return Ok(());
    }
    // To clear memory for a stretch takes longer than to convert a few.
    match bytes.len() / size(from) <= FEW {
        true => convert_by::<FEW>(casting, (from, bytes), (to, out)),
        false => convert_by::<STRETCH>(casting, (from, bytes), (to, out)),
    }
}

/// Converts `N` elements at most.
fn convert_by<const N: usize>(
    casting: Casting,
    (from, bytes): (DType, &[u8]),
    (to, out): (DType, &mut [u8]),
) -> Result<(), Error> {
    let n = bytes.len() / size(from);
    if is_whole(from) && is_whole(to) {
        let mut wide = [0_i64; N];
        load_whole(from, bytes, &mut wide[..n])?;
        return store_whole(to, &wide[..n], out);
    }
    let mut wide = [0_f64; N];
    load(from, bytes, &mut wide[..n])?;
    store(casting, to, &wide[..n], out)
}

/// Expands `body` for the Rust type of a number that the processor knows.
macro_rules! with_plain {
    ($dtype:expr, ($($name:ident $type:ty),*), $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            $(DType::$name => { type $T = $type; $body })*
            _ => $other,
        }
    };
}

fn load_whole(dtype: DType, bytes: &[u8], out: &mut [i64]) -> Result<(), Error> {
    #[allow(
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "the low bits are what is asked for"
    )]
    {
        with_plain!(dtype, (Ui8 u8, Ui16 u16, Ui32 u32, Ui64 u64, I8 i8, I16 i16, I32 i32, I64 i64), T => {
            for (out, x) in out.iter_mut().zip(from_bytes::<T>(bytes)?) {
                *out = *x as i64;
            }
        }, else {
            for (out, x) in out.iter_mut().zip(bytes) {
                *out = small_whole(dtype, *x);
            }
        });
    }
    Ok(())
}

/// Returns the integer of a byte.
fn small_whole(dtype: DType, byte: u8) -> i64 {
    match dtype {
        DType::I1 => i64::from(byte != 0),
        DType::I4 => i64::from((byte << 4).cast_signed() >> 4),
        DType::I2 => i64::from((byte << 6).cast_signed() >> 6),
        DType::Ui2 => i64::from(byte & 0x3),
        _ => i64::from(byte & 0xf),
    }
}

fn store_whole(dtype: DType, x: &[i64], out: &mut [u8]) -> Result<(), Error> {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the low bits are what is asked for"
    )]
    {
        with_plain!(dtype, (Ui8 u8, Ui16 u16, Ui32 u32, Ui64 u64, I8 i8, I16 i16, I32 i32, I64 i64), T => {
            for (out, x) in from_bytes_mut::<T>(out)?.iter_mut().zip(x) {
                *out = *x as T;
            }
        }, else {
            let mask = mask(dtype);
            for (out, x) in out.iter_mut().zip(x) {
                *out = if dtype == DType::I1 { u8::from(*x != 0) } else { *x as u8 & mask };
            }
        });
    }
    Ok(())
}

/// Returns the bits of a byte that the code of an element has.
fn mask(dtype: DType) -> u8 {
    let n_bits = SubbyteType::of_dtype(dtype).map_or(8, SubbyteType::n_bits);
    u8::MAX >> (8 - n_bits)
}

pub(super) fn load(dtype: DType, bytes: &[u8], out: &mut [f64]) -> Result<(), Error> {
    with_plain!(dtype, (Ui8 u8, Ui16 u16, Ui32 u32, Ui64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F16 F16, Bf16 BF16,
        F32 f32, F64 f64), T => {
        for (out, x) in out.iter_mut().zip(from_bytes::<T>(bytes)?) {
            *out = x.to_f64();
        }
    }, else match SubbyteType::of_dtype(dtype) {
        Some(compact) => {
            for (out, x) in out.iter_mut().zip(bytes) {
                *out = compact.decode(*x).into();
            }
        }
        None => {
            for (out, x) in out.iter_mut().zip(from_bytes::<Bool>(bytes)?) {
                *out = f64::from(u8::from(bool::from(*x)));
            }
        }
    });
    Ok(())
}

pub(super) fn store(
    casting: Casting,
    dtype: DType,
    x: &[f64],
    out: &mut [u8],
) -> Result<(), Error> {
    with_plain!(dtype, (Ui8 u8, Ui16 u16, Ui32 u32, Ui64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F16 F16, Bf16 BF16,
        F32 f32, F64 f64), T => {
        for (out, x) in from_bytes_mut::<T>(out)?.iter_mut().zip(x) {
            *out = T::from_f64(*x);
        }
    }, else match SubbyteType::of_dtype(dtype) {
        Some(compact) if compact.is_integer() => {
            let mask = mask(dtype);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits of what is rounded")]
            for (out, x) in out.iter_mut().zip(x) {
                *out = *x as i64 as u8 & mask;
            }
        }
        Some(compact) => {
            for (out, x) in out.iter_mut().zip(x) {
                *out = encode(casting, compact, *x);
            }
        }
        None => {
            for (out, x) in from_bytes_mut::<Bool>(out)?.iter_mut().zip(x) {
                *out = Bool::from(*x != 0.0);
            }
        }
    });
    Ok(())
}

/// Returns the code of a number in a small float, as ONNX has it: where numbers that are too large become the
/// largest, infinities do as well; what is no number becomes -0 of types that have nothing better.
pub fn encode(casting: Casting, compact: SubbyteType, value: f64) -> u8 {
    let saturates = casting.overflow == Overflow::Saturate;
    let narrow = match to_odd(value) {
        none if none.is_nan() && !compact.has_nan() => return 1 << (compact.n_bits() - 1),
        infinite if infinite.is_infinite() && saturates => f32::MAX.copysign(infinite),
        narrow => narrow,
    };
    if compact != SubbyteType::F8E8M0 || casting.powers == PowerRounding::Up {
        return compact.encode(narrow, casting.overflow);
    }
    // What is below the least normal number is the least power, or half of the next.
    let is_number = narrow > 0.0 && narrow.is_finite();
    let lower = if is_number {
        f32::from_bits(narrow.to_bits() & 0x7f80_0000)
    } else {
        narrow
    };
    let is_upper = casting.powers == PowerRounding::Nearest && is_number && narrow >= 1.5 * lower;
    compact.encode(if is_upper { 2.0 * lower } else { lower }, casting.overflow)
}

/// Returns a number as an `f32` whose last bit is 1 if the number was rounded. Rounding the result again gives the
/// bits of rounding once.
fn to_odd(value: f64) -> f32 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the remainder is looked at"
    )]
    let narrow = value as f32;
    let back = f64::from(narrow);
    if back == value || value.is_nan() || narrow.to_bits() & 1 == 1 {
        return narrow;
    }
    // The neighbour on the number's side.
    let is_larger = back.abs() > value.abs();
    let bits = narrow.to_bits();
    f32::from_bits(if is_larger {
        bits.wrapping_sub(1)
    } else {
        bits + 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;

    fn cast<T: Element, U: Element>(x: &[T], casting: Casting) -> Vec<U> {
        let mut out = vec![U::ZERO; x.len()];
        let (from, to) = (crate::to_bytes(x), crate::to_bytes_mut(&mut out));
        convert(casting, (T::DTYPE, from), (U::DTYPE, to)).unwrap();
        out
    }

    #[test]
    fn integers_keep_low_bits_and_floats_are_rounded() {
        let plain = Casting::default();
        assert_eq!(cast::<i32, u8>(&[-1, 258], plain), [255, 2]);
        assert_eq!(cast::<f32, i8>(&[-1.9, 300.0], plain), [-1, 127]);
        assert_eq!(cast::<i64, f32>(&[1 << 40], plain), [1_099_511_627_776.0]);
        assert_eq!(
            cast::<f32, crate::I4>(&[8.0, -9.0], plain),
            [crate::Small(8), crate::Small(7)]
        );
        assert_eq!(cast::<crate::I2, i8>(&[crate::Small(3)], plain), [-1]);
        assert_eq!(
            cast::<f64, Bool>(&[0.0, -0.1], plain),
            [Bool::from(false), Bool::from(true)]
        );
        assert_eq!(
            cast::<u64, f64>(&[u64::MAX], plain),
            [18_446_744_073_709_551_616.0]
        );
    }

    #[test]
    fn small_floats_are_rounded_once() {
        let plain = Casting::default();
        // Just above the middle between two codes, and nearer to it than an `f32` can tell.
        let middle = 1.0 + 1.0 / 16.0;
        let found = cast::<f64, crate::F8E4M3FN>(&[middle, middle + 1e-12], plain);
        assert_eq!(found.map_to(), [1.0, 1.125]);
    }

    trait MapTo {
        fn map_to(&self) -> Vec<f32>;
    }

    impl<const TYPE: usize> MapTo for Vec<crate::Small<TYPE>> {
        fn map_to(&self) -> Vec<f32> {
            self.iter().map(|one| one.to_f32()).collect()
        }
    }

    #[test]
    fn powers_are_rounded_as_asked() {
        let of = |powers| {
            let casting = Casting {
                powers,
                overflow: Overflow::Saturate,
            };
            cast::<f32, crate::F8E8M0>(&[2.0, 2.5, 3.0, 0.75], casting).map_to()
        };
        assert_eq!(of(PowerRounding::Up), [2.0, 4.0, 4.0, 1.0]);
        assert_eq!(of(PowerRounding::Down), [2.0, 2.0, 2.0, 0.5]);
        assert_eq!(of(PowerRounding::Nearest), [2.0, 2.0, 4.0, 1.0]);
    }
}
