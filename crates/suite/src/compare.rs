//! Comparison of outputs with those that are expected.
//!
//! Types and shapes are to be the same, and elements close: as far from what is expected as
//! [`ABSOLUTE`] and [`RELATIVE`] of it allow together. What is no number is close to what is none.

use tfrt::Error;
use tfrt::model::Datum;
use tfrt::tensor::subbyte::SubbyteType;
use tfrt::tensor::{BF16, Bool, Complex, DType, F16, Optional, Sequence, Tensor};

/// The relative tolerance: that of ONNX's own runner.
const RELATIVE: f64 = 1e-3;
/// The absolute tolerance.
const ABSOLUTE: f64 = 1e-7;

/// Compares an output; of random outputs type and shape alone.
pub fn compare(wanted: &Datum, found: &Datum, is_random: bool) -> Result<(), String> {
    match (wanted, found) {
        (Datum::Tensor(wanted), Datum::Tensor(found)) => tensors(wanted, found, is_random),
        (Datum::Sequence(wanted), Datum::Sequence(found)) => sequences(wanted, found, is_random),
        // The suite does not tell an optional value from what is in it.
        (Datum::Optional(Optional::Tensor(wanted)), _) => {
            compare(&Datum::Tensor(wanted.clone()), found, is_random)
        }
        (Datum::Optional(Optional::Sequence(wanted)), _) => {
            compare(&Datum::Sequence(wanted.clone()), found, is_random)
        }
        (_, Datum::Optional(Optional::Tensor(found))) => {
            compare(wanted, &Datum::Tensor(found.clone()), is_random)
        }
        (_, Datum::Optional(Optional::Sequence(found))) => {
            compare(wanted, &Datum::Sequence(found.clone()), is_random)
        }
        (Datum::Optional(Optional::Nothing), Datum::Optional(Optional::Nothing)) => Ok(()),
        _ => Err(format!(
            "expected {}, found {}",
            wanted.kind(),
            found.kind()
        )),
    }
}

fn sequences(wanted: &Sequence, found: &Sequence, is_random: bool) -> Result<(), String> {
    let (n_wanted, n_found) = (wanted.tensors().len(), found.tensors().len());
    if n_wanted != n_found {
        return Err(format!("expected {n_wanted} tensors, found {n_found}"));
    }
    let pairs = wanted.tensors().iter().zip(found.tensors());
    for (index, (wanted, found)) in pairs.enumerate() {
        tensors(wanted, found, is_random).map_err(|reason| format!("tensor {index}: {reason}"))?;
    }
    Ok(())
}

fn tensors(wanted: &Tensor, found: &Tensor, is_random: bool) -> Result<(), String> {
    if wanted.metadata() != found.metadata() {
        return Err(format!(
            "expected {}, found {}",
            wanted.metadata(),
            found.metadata()
        ));
    }
    if is_random {
        return Ok(());
    }
    if let (Tensor::String(wanted), Tensor::String(found)) = (wanted, found) {
        let mut pairs = wanted.strings().iter().zip(found.strings());
        return match pairs.position(|(wanted, found)| wanted != found) {
            None => Ok(()),
            Some(index) => {
                let text = |list: &[Vec<u8>]| String::from_utf8_lossy(&list[index]).into_owned();
                let (wanted, found) = (text(wanted.strings()), text(found.strings()));
                Err(format!(
                    "element {index}: expected {wanted:?}, found {found:?}"
                ))
            }
        };
    }
    let (wanted, found) = (numbers(wanted)?, numbers(found)?);
    let pairs = wanted.iter().zip(&found).enumerate();
    let far: Vec<usize> = pairs
        .filter(|(_, (wanted, found))| !is_close(**wanted, **found))
        .map(|(index, _)| index)
        .collect();
    let Some(first) = far.first() else {
        return Ok(());
    };
    let (n, total, wanted, found) = (far.len(), found.len(), wanted[*first], found[*first]);
    Err(format!(
        "{n} of {total} elements differ: element {first}: expected {wanted:?}, found {found:?}"
    ))
}

fn is_close(wanted: f64, found: f64) -> bool {
    if wanted.is_nan() || found.is_nan() {
        return wanted.is_nan() && found.is_nan();
    }
    wanted == found || (wanted - found).abs() <= ABSOLUTE + RELATIVE * wanted.abs()
}

/// Returns the elements as numbers, complex ones as two.
pub fn numbers(tensor: &Tensor) -> Result<Vec<f64>, String> {
    let told = |error: Error| error.message().to_owned();
    let dense = tensor.as_dense().map_err(told)?;
    let reading = dense.read().map_err(told)?;
    if let Some(small) = SubbyteType::of_dtype(dense.dtype()) {
        return Ok(reading
            .bytes()
            .iter()
            .map(|code| small.decode(*code).into())
            .collect());
    }
    // Expands to `match dtype { DType::Ui8 => .. elements::<u8>() .., .. }`.
    macro_rules! by_type {
        ($($dtype:ident: $type:ty;)*) => {
            match dense.dtype() {
                $(DType::$dtype => {
                    let elements = reading.elements::<$type>().map_err(told)?.iter();
                    Ok(elements.flat_map(ToNumbers::parts).collect())
                })*
                other => Err(format!("elements of {other} are not compared")),
            }
        };
    }
    by_type! {
        Ui8: u8; Ui16: u16; Ui32: u32; Ui64: u64; I8: i8; I16: i16; I32: i32; I64: i64; F32: f32; F64: f64;
        I1: Bool; F16: F16; Bf16: BF16; Complex64: Complex<f32>; Complex128: Complex<f64>;
    }
}

/// A type of elements that convert to numbers.
trait ToNumbers {
    fn parts(&self) -> Vec<f64>;
}

/// Implements [`ToNumbers`]: `parts!(u8: |x| [f64::from(*x)])`.
macro_rules! parts {
    ($($type:ty: |$x:ident| $parts:expr;)*) => {$(
        impl ToNumbers for $type {
            fn parts(&self) -> Vec<f64> {
                let $x = self;
                $parts.to_vec()
            }
        }
    )*};
}

parts! {
    u8: |x| [f64::from(*x)];
    u16: |x| [f64::from(*x)];
    u32: |x| [f64::from(*x)];
    u64: |x| [*x as f64];
    i8: |x| [f64::from(*x)];
    i16: |x| [f64::from(*x)];
    i32: |x| [f64::from(*x)];
    i64: |x| [*x as f64];
    f32: |x| [f64::from(*x)];
    f64: |x| [*x];
    Bool: |x| [f64::from(u8::from(bool::from(*x)))];
    Complex<f32>: |x| [f64::from(x.real), f64::from(x.imaginary)];
    Complex<f64>: |x| [x.real, x.imaginary];
    F16: |x| [tfrt::tensor::math::number::Real::to_f64(*x)];
    BF16: |x| [tfrt::tensor::math::number::Real::to_f64(*x)];
}
