//! Numbers as integers or small floats: `x = (q - zero) * scale`.
//!
//! Scales and zero points are one for all elements, one for each place along a dimension, or one for each of
//! the blocks into which rows along a dimension are cut.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::cast::{self, Casting, STRETCH};
use super::parallel;
use crate::subbyte::SubbyteType;
use crate::{BF16, DType, DenseHostTensor, F16};

mod runs;
mod sum;

pub use runs::extremes;
pub use sum::{QuantizedSum, quantized_sum_into};

/// Scales and zero points of quantization.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantParams {
    scales: Vec<f64>,
    /// Zero points, as many as scales, or none for zeros.
    zeros: Vec<f64>,
    layout: ScaleLayout,
}

/// Mapping from elements to scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScaleLayout {
    One,
    /// The scale at `index / stride / block % extent`.
    Along {
        extent: usize,
        stride: usize,
    },
    /// One scale for each block of neighbours along a dimension.
    Blocks {
        extent: usize,
        stride: usize,
        block: usize,
    },
}

impl QuantParams {
    /// Returns the parameters for a tensor of these extents.
    ///
    /// # Shapes
    ///
    /// `scales`: `[]` or `[1]` for all; `[extents[dimension]]`; or `extents` with that of the dimension divided
    /// by `block` and rounded up. `zeros`: empty, or as many.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shapes are not that.
    pub fn new(
        extents: &[usize],
        dimension: Option<usize>,
        block: usize,
        (scale_extents, scales): (&[usize], Vec<f64>),
        zeros: Vec<f64>,
    ) -> Result<QuantParams, Error> {
        let misfit = || {
            let zeros = match zeros.len() {
                0 => String::new(),
                n => format!(" with {n} zero points"),
            };
            let along = dimension.map(|dimension| format!(" along dimension {dimension}"));
            let blocks = match block {
                0 => String::new(),
                block => format!(" in blocks of {block}"),
            };
            Error::invalid_argument(format!(
                "scales of shape {scale_extents:?}{zeros} don't fit a tensor of shape {extents:?}{}{blocks}",
                along.unwrap_or_default()
            ))
        };
        let stride = |dimension: usize| {
            extents[dimension + 1..]
                .iter()
                .try_fold(1_usize, |n, e| n.checked_mul(*e))
        };
        let found = dimension.filter(|dimension| *dimension < extents.len());
        let layout = match (scale_extents, found) {
            _ if scales.len() == 1 && block == 0 => ScaleLayout::One,
            ([n], Some(dimension)) if block == 0 && *n == extents[dimension] => {
                ScaleLayout::Along {
                    extent: *n,
                    stride: stride(dimension).ok_or_else(misfit)?,
                }
            }
            (blocks, Some(dimension)) if block > 0 && blocks.len() == extents.len() => {
                let fits = blocks
                    .iter()
                    .enumerate()
                    .all(|(index, n)| match index == dimension {
                        true => *n == extents[index].div_ceil(block),
                        false => *n == extents[index],
                    });
                if !fits {
                    return Err(misfit());
                }
                let stride = stride(dimension).ok_or_else(misfit)?;
                ScaleLayout::Blocks {
                    extent: extents[dimension],
                    stride,
                    block,
                }
            }
            _ => return Err(misfit()),
        };
        if !zeros.is_empty() && zeros.len() != scales.len() {
            return Err(misfit());
        }
        Ok(QuantParams {
            scales,
            zeros,
            layout,
        })
    }

    /// Returns the number of neighbours from an element on that have its scale and zero point.
    fn n_alike(&self, index: usize) -> usize {
        match self.layout {
            ScaleLayout::One => usize::MAX,
            ScaleLayout::Along { stride, .. } => stride - index % stride,
            ScaleLayout::Blocks {
                extent,
                stride: 1,
                block,
            } => {
                let place = index % extent;
                (block - place % block).min(extent - place)
            }
            ScaleLayout::Blocks { .. } => 1,
        }
    }

    /// Returns the scale and the zero point of an element.
    fn of(&self, index: usize) -> (f64, f64) {
        let index = match self.layout {
            ScaleLayout::One => 0,
            ScaleLayout::Along { extent, stride } => index / stride % extent,
            ScaleLayout::Blocks {
                extent,
                stride,
                block,
            } => {
                let (row, inner) = (index / stride, index % stride);
                let (outer, place) = (row / extent, row % extent);
                (outer * extent.div_ceil(block) + place / block) * stride + inner
            }
        };
        (
            self.scales[index],
            self.zeros.get(index).copied().unwrap_or(0.0),
        )
    }
}

/// Returns the range of the integers that numbers are quantised to.
fn range(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::Ui8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::Ui16 => (0.0, 65535.0),
        DType::I16 => (-32768.0, 32767.0),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::Ui4 => (0.0, 15.0),
        DType::I4 => (-8.0, 7.0),
        DType::Ui2 => (0.0, 3.0),
        DType::I2 => (-2.0, 1.0),
        _ => return None,
    })
}

/// Returns a quotient as a float type has it.
fn rounded(dtype: DType, value: f64) -> f64 {
    use super::number::Real;
    match dtype {
        DType::F16 => F16::from_f64(value).to_f64(),
        DType::Bf16 => BF16::from_f64(value).to_f64(),
        DType::F32 => f32::from_f64(value).to_f64(),
        _ => value,
    }
}

/// Quantises: `x / scale`, calculated in the float type `precision`, rounded to integers, ties to even, plus the zero
/// point, saturated. Small floats get `x / scale + zero`, converted.
///
/// # Shapes
///
/// `x` and `out` are of one shape, which the scaling was made for.
///
/// # Errors
///
/// `InvalidArgument` if they are not, or if `out` is of a type that nothing is quantised to, and those of
/// [`parallel::fill_bytes`].
pub fn quantize_into(
    execution: &ExecutionContext,
    scaling: QuantParams,
    (precision, casting): (DType, Casting),
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let to = out.dtype();
    let range = range(to);
    if range.is_none() && SubbyteType::of_dtype(to).is_none() {
        let message = format!("numbers can't be quantised to {to}");
        return Err(Error::invalid_argument(message));
    }
    if precision == DType::F32 && runs::takes(&scaling, x, out) {
        return runs::quantize_into(execution, scaling, x, out);
    }
    each_stretch(execution, casting, x, out, move |index, x| {
        let (scale, zero) = scaling.of(index);
        let quotient = rounded(precision, x / scale);
        match range {
            Some((least, largest)) => (quotient.round_ties_even() + zero).clamp(least, largest),
            None => quotient + zero,
        }
    })
}

/// Dequantizes: `(q - zero) * scale`.
///
/// # Shapes
///
/// `x` and `out` are of one shape, which the scaling was made for.
///
/// # Errors
///
/// `InvalidArgument` if they are not, and those of [`parallel::fill_bytes`].
pub fn dequantize_into(
    execution: &ExecutionContext,
    scaling: QuantParams,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    if runs::takes(&scaling, out, x) {
        return runs::dequantize_into(execution, scaling, x, out);
    }
    each_stretch(execution, Casting::default(), x, out, move |index, x| {
        let (scale, zero) = scaling.of(index);
        (x - zero) * scale
    })
}

/// Makes each element by a function of its index and of the element of `x`.
fn each_stretch(
    execution: &ExecutionContext,
    casting: Casting,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
    function: impl Fn(usize, f64) -> f64 + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    super::elementwise::expect_same(x.shape(), out.shape())?;
    let (from, to) = (x.dtype(), out.dtype());
    if !cast::is_castable(from) || !cast::is_castable(to) {
        let message = format!("expected real numbers to quantise, found {from} and {to}");
        return Err(Error::invalid_argument(message));
    }
    let [from_size, to_size] = [from, to].map(|dtype| dtype.size_bytes().unwrap_or(1));
    let x = x.clone();
    let chunk = parallel::chunk_len(16, STRETCH);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        let mut wide = [0.0; STRETCH];
        let mut first = first;
        for part in part.chunks_mut(STRETCH * to_size) {
            let wide = &mut wide[..part.len() / to_size];
            let bytes = &reading.bytes()[first * from_size..(first + wide.len()) * from_size];
            cast::load(from, bytes, wide)?;
            for (index, value) in wide.iter_mut().enumerate() {
                *value = function(first + index, *value);
            }
            cast::store(casting, to, wide, part)?;
            first += wide.len();
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_belong_to_places() {
        let of =
            |scaling: &QuantParams| (0..8).map(|index| scaling.of(index).0).collect::<Vec<_>>();
        let extents = [2, 4];
        let one = QuantParams::new(&extents, Some(1), 0, (&[], vec![3.0]), Vec::new()).unwrap();
        assert_eq!(of(&one), [3.0; 8]);
        let rows =
            QuantParams::new(&extents, Some(0), 0, (&[2], vec![1.0, 2.0]), vec![5.0, 6.0]).unwrap();
        assert_eq!(of(&rows), [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(rows.of(7), (2.0, 6.0));
        assert_eq!((one.n_alike(5), rows.n_alike(5)), (usize::MAX, 3));
        let blocks = vec![1.0, 2.0, 3.0, 4.0];
        let blocks = QuantParams::new(&extents, Some(1), 3, (&[2, 2], blocks), Vec::new()).unwrap();
        assert_eq!(of(&blocks), [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0]);
        let n_alike: Vec<usize> = (0..8).map(|index| blocks.n_alike(index)).collect();
        assert_eq!(n_alike, [3, 2, 1, 1, 3, 2, 1, 1]);
        assert!(
            QuantParams::new(&extents, Some(1), 3, (&[2, 3], vec![1.0; 6]), Vec::new()).is_err()
        );
        assert!(QuantParams::new(&extents, Some(5), 0, (&[4], vec![1.0; 4]), Vec::new()).is_err());
    }
}
