//! Reductions of many elements to one.
//!
//! # Order
//!
//! The order in which elements are taken depends on the shape alone. Where neighbours in memory are reduced,
//! [`LANES`] partial results are kept, each of every `LANES`-th element of a block of [`BLOCK`]; they are
//! combined pair by pair, and so are the blocks. (Of what is left of a block every [`FEW_LANES`]-th element is
//! taken together; fewer elements than that are taken one by one.) So a sum's error grows with the logarithm of
//! the number of blocks rather than with the number of elements. Where elements that lie apart are reduced,
//! neighbours are reduced side by side, in the order of the dimensions.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Family, parallel};
use crate::{
    BF16, Complex, DType, DenseHostTensor, F16, TensorView, TensorViewMut, from_bytes,
    from_bytes_mut, to_bytes, to_bytes_mut,
};

mod element;
mod functions;
mod lanes;
mod logarithm;
mod plan;
mod positions;

pub(crate) use functions::{
    Maximum, Mean, Minimum, Norm, Product, Reduce, Sum, SumOfSizes, SumOfSquares,
};
pub(crate) use lanes::{block, block_by};
pub use positions::{Extremum, Ties, position, positions_into};

use element::ReduceElement;
use logarithm::{LogSum, LogSumExp};
use plan::ReducePlan;

/// Number of partial results that are kept side by side: more than one vector, since each sum waits for the one
/// before.
pub const LANES: usize = 64;
/// Number of partial results for rows that are too short for [`LANES`].
pub const FEW_LANES: usize = 16;
/// Elements that are reduced in lanes before the results are combined.
pub const BLOCK: usize = 1024;

/// A reduction of many elements to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum; integers wrap around.
    Sum,
    /// The product; integers wrap around.
    Product,
    /// The sum of absolute values; integers wrap around.
    SumOfSizes,
    /// The sum of the squares; integers wrap around.
    SumOfSquares,
    /// The root of the sum of the squares.
    Norm,
    /// The mean; of integers, rounded towards 0.
    Mean,
    /// The smallest element; NaN, if one is.
    Minimum,
    /// The largest element; NaN, if one is.
    Maximum,
    /// The logarithm of the sum.
    LogSum,
    /// The logarithm of the sum of all e^x; minus infinity for no elements.
    LogSumExp,
}

/// Loop that makes the results from one on, of elements given as bytes.
type Run = fn(&ReducePlan, &[u8], usize, &mut [u8]) -> Result<(), Error>;

impl Reduction {
    /// Returns the types of elements that can be reduced so.
    pub fn family(self) -> Family {
        match self {
            Reduction::Sum | Reduction::Product | Reduction::SumOfSquares => Family::Numbers,
            Reduction::SumOfSizes | Reduction::Mean | Reduction::Minimum | Reduction::Maximum => {
                Family::Reals
            }
            Reduction::Norm | Reduction::LogSum | Reduction::LogSumExp => Family::Floats,
        }
    }

    /// Returns whether there is a result of no elements at all.
    fn has_result_of_nothing(self) -> bool {
        !matches!(
            self,
            Reduction::Mean | Reduction::Minimum | Reduction::Maximum
        )
    }

    /// Returns the loops for elements of a type.
    fn run(self, dtype: DType) -> Result<Run, Error> {
        // Sums and products that wrap around are the same bits whether there is a sign or not.
        let run = match self {
            Reduction::Sum => wrapping::<Sum>(dtype),
            Reduction::Product => wrapping::<Product>(dtype),
            Reduction::SumOfSquares => wrapping::<SumOfSquares>(dtype),
            Reduction::SumOfSizes => reals::<SumOfSizes>(dtype),
            Reduction::Mean => reals::<Mean>(dtype),
            Reduction::Minimum => reals::<Minimum>(dtype),
            Reduction::Maximum => reals::<Maximum>(dtype),
            Reduction::Norm => floats::<Norm>(dtype),
            Reduction::LogSum => floats::<LogSum>(dtype),
            Reduction::LogSumExp => floats::<LogSumExp>(dtype),
        };
        run.ok_or_else(|| self.family().lacks(dtype))
    }
}

/// Returns the loops of a reduction of floats.
fn floats<R: Reduce<f32> + Reduce<f64>>(dtype: DType) -> Option<Run> {
    match dtype {
        DType::F32 => Some(run::<R, f32>),
        DType::F64 => Some(run::<R, f64>),
        DType::F16 => Some(run::<R, F16>),
        DType::Bf16 => Some(run::<R, BF16>),
        _ => None,
    }
}

/// Returns the loops of a reduction of numbers, of which integers wrap around.
fn wrapping<R>(dtype: DType) -> Option<Run>
where
    R: Reduce<f32> + Reduce<f64> + Reduce<u8> + Reduce<u16> + Reduce<u32> + Reduce<u64>,
    R: Reduce<Complex<f32>> + Reduce<Complex<f64>>,
{
    match dtype {
        DType::Ui8 | DType::I8 => Some(run::<R, u8>),
        DType::Ui16 | DType::I16 => Some(run::<R, u16>),
        DType::Ui32 | DType::I32 => Some(run::<R, u32>),
        DType::Ui64 | DType::I64 => Some(run::<R, u64>),
        DType::Complex64 => Some(run::<R, Complex<f32>>),
        DType::Complex128 => Some(run::<R, Complex<f64>>),
        dtype => floats::<R>(dtype),
    }
}

/// Returns the loops of a reduction of real numbers.
fn reals<R>(dtype: DType) -> Option<Run>
where
    R: Reduce<f32> + Reduce<f64> + Reduce<u8> + Reduce<u16> + Reduce<u32> + Reduce<u64>,
    R: Reduce<i8> + Reduce<i16> + Reduce<i32> + Reduce<i64>,
{
    match dtype {
        DType::Ui8 => Some(run::<R, u8>),
        DType::Ui16 => Some(run::<R, u16>),
        DType::Ui32 => Some(run::<R, u32>),
        DType::Ui64 => Some(run::<R, u64>),
        DType::I8 => Some(run::<R, i8>),
        DType::I16 => Some(run::<R, i16>),
        DType::I32 => Some(run::<R, i32>),
        DType::I64 => Some(run::<R, i64>),
        dtype => floats::<R>(dtype),
    }
}

fn run<R: Reduce<T::Loop>, T: ReduceElement>(
    plan: &ReducePlan,
    x: &[u8],
    first: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    plan.run::<R, T>(from_bytes(x)?, first, from_bytes_mut(out)?);
    Ok(())
}

/// Reduces a view over some of its dimensions.
///
/// # Shapes
///
/// `out` has the dimensions of `x` that are not reduced, in their order; or all of them, with extent 1 where
/// they are.
///
/// # Errors
///
/// `InvalidArgument` if a dimension is missing or named twice, if `out` is of another shape, if the elements can't be
/// reduced so, or if there is nothing to reduce and the reduction has no result for that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::reduce::{Reduction, reduce};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let mut columns = [0.0; 2];
/// reduce(Reduction::Sum, &x, &[0], &mut TensorViewMut::new(&mut columns, &[2])?)?;
/// assert_eq!(columns, [4.0, 6.0]);
/// let mut mean = [0.0];
/// reduce(Reduction::Mean, &x, &[0, 1], &mut TensorViewMut::new(&mut mean, &[])?)?;
/// assert_eq!(mean, [2.5]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn reduce<T: crate::Element>(
    reduction: Reduction,
    x: &TensorView<'_, T>,
    dimensions: &[usize],
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let run = reduction.run(T::DTYPE)?;
    let plan = ReducePlan::new(x.extents(), x.strides(), dimensions, out.extents())?;
    let out = to_bytes_mut(out.as_mut_slice());
    expect_some(reduction, &plan, out.len())?;
    run(&plan, to_bytes(x.elements()), 0, out)
}

/// Reduces a tensor over some of its dimensions, on the workers of the request's queue if there is much to do.
///
/// # Shapes
///
/// Those of [`reduce`].
///
/// # Errors
///
/// Those of [`reduce`], `InvalidArgument` if the types differ, and those of [`parallel::fill_bytes`].
pub fn reduce_into(
    execution: &ExecutionContext,
    reduction: Reduction,
    x: &DenseHostTensor,
    dimensions: &[usize],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let run = reduction.run(x.dtype())?;
    out.metadata().expect_dtype(x.dtype())?;
    let shape = x.shape();
    let plan = ReducePlan::new(
        &shape.to_dims(),
        &shape.strides(),
        dimensions,
        &out.shape().to_dims(),
    )?;
    expect_some(reduction, &plan, out.n_elements())?;
    let x = x.clone();
    let chunk = plan.chunk_len();
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        run(&plan, x.read()?.bytes(), first, part)
    })
}

/// Checks that there are elements to reduce where results need some.
fn expect_some(reduction: Reduction, plan: &ReducePlan, n_results: usize) -> Result<(), Error> {
    match plan.n_reduced() == 0 && !reduction.has_result_of_nothing() && n_results > 0 {
        true => Err(nothing_to_reduce()),
        false => Ok(()),
    }
}

#[cold]
fn nothing_to_reduce() -> Error {
    Error::invalid_argument("there is nothing to reduce, and no result for that")
}

#[cfg(test)]
mod tests;
