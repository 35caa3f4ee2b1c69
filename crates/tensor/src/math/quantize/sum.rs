//! Sums of two quantised tensors, quantised again, in one pass: with the bits of dequantising, adding and quantising.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::runs::{Narrow, saturated};
use crate::math::elementwise::expect_same;
use crate::math::{parallel, vectorized};
use crate::{DType, DenseHostTensor};

/// Scales and zero points of the sum of two tensors of bytes: of both operands, and of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizedSum {
    /// The numbers that a step stands for.
    pub scales: [f32; 3],
    /// The integers that stand for 0.
    pub zeros: [i16; 3],
}

/// Adds two tensors of `u8` or of `i8` into one of their type.
///
/// # Errors
///
/// `InvalidArgument` if shapes or types differ, or are others, and the errors of [`parallel::fill`].
pub fn quantized_sum_into(
    execution: &ExecutionContext,
    by: QuantizedSum,
    operands: [&DenseHostTensor; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for operand in operands {
        expect_same(operand.shape(), out.shape())?;
        if operand.dtype() != out.dtype() {
            let (found, wanted) = (operand.dtype(), out.dtype());
            let message = format!("expected operands of {wanted}, as the result, found {found}");
            return Err(Error::invalid_argument(message));
        }
    }
    match out.dtype() {
        DType::Ui8 => sum::<u8>(execution, by, operands, out),
        DType::I8 => sum::<i8>(execution, by, operands, out),
        dtype => {
            let message = format!("expected quantised tensors of u8 or i8, found {dtype}");
            Err(Error::invalid_argument(message))
        }
    }
}

fn sum<Q: Narrow>(
    execution: &ExecutionContext,
    by: QuantizedSum,
    [a, b]: [&DenseHostTensor; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (a, b) = (a.clone(), b.clone());
    let QuantizedSum { scales, zeros } = by;
    let zeros = zeros.map(f32::from);
    let chunk = parallel::chunk_len(2, 1);
    parallel::fill(execution, out, chunk, move |first, out: &mut [Q]| {
        let (a, b) = (a.read()?, b.read()?);
        let a = &a.elements::<Q>()?[first..][..out.len()];
        let b = &b.elements::<Q>()?[first..][..out.len()];
        vectorized(
            #[inline(always)]
            || {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    let (a, b): (f32, f32) = ((*a).into(), (*b).into());
                    let sum = (a - zeros[0]) * scales[0] + (b - zeros[1]) * scales[1];
                    *out = saturated((sum / scales[2]).round_ties_even() + zeros[2]);
                }
            },
        );
        Ok(())
    })
}
