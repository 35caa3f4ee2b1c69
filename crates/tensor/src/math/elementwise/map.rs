//! Functions with parameters, of one operand and of many; selection. All on the workers of a queue.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::super::broadcast::Broadcast;
use super::super::{parallel, vectorized};
use super::{Binary, expect_same, expect_shape, select_run};
use crate::{Bool, DenseHostTensor, Element};

/// Calculates a function of each element of a tensor, which costs about so many additions.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not, or of other types, and those of [`parallel::fill`].
pub fn map_into<T: Element, U: Element>(
    execution: &ExecutionContext,
    cost: usize,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
    function: impl Fn(T) -> U + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    expect_same(x.shape(), out.shape())?;
    let x = x.clone();
    let chunk = parallel::chunk_len(cost, 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [U]| {
        let reading = x.read()?;
        let x = &reading.elements::<T>()?[first..first + part.len()];
        vectorized(
            #[inline(always)]
            || {
                for (out, x) in part.iter_mut().zip(x) {
                    *out = function(*x);
                }
            },
        );
        Ok(())
    })
}

/// Takes many tensors together, element by element: `finish(f(f(a, b), c))`.
///
/// # Shapes
///
/// All inputs broadcast to `out`.
///
/// # Errors
///
/// `InvalidArgument` if they don't, if there are none, or of other types, and those of [`parallel::fill`].
pub fn fold_into<F: Binary<T, Output = T>, T: Element>(
    execution: &ExecutionContext,
    inputs: &[&DenseHostTensor],
    finish: impl Fn(T) -> T + Send + Sync + 'static,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    if inputs.is_empty() {
        return Err(Error::invalid_argument("there is nothing to take together"));
    }
    let extents = out.shape().to_dims();
    let mut walks = Vec::with_capacity(inputs.len());
    for input in inputs {
        crate::dense::expect_dtype::<T>(input.metadata())?;
        let of_out = (&extents[..], &out.shape().strides()[..]);
        let walk = Broadcast::new([of_out, (&input.shape().to_dims(), &input.shape().strides())])?;
        expect_shape(walk.shape(), &extents)?;
        walks.push(((*input).clone(), walk));
    }
    let chunk = parallel::chunk_len(F::COST.saturating_mul(inputs.len()), 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        for (index, (input, walk)) in walks.iter().enumerate() {
            let reading = input.read()?;
            let elements = reading.elements::<T>()?;
            let mut done = 0;
            walk.walk(first, part.len(), |run| {
                let input = &elements[run.offsets[1]..];
                let part = &mut part[done..done + run.len];
                done += run.len;
                let stride = run.strides[1];
                vectorized(
                    #[inline(always)]
                    || {
                        for (position, out) in part.iter_mut().enumerate() {
                            let x = input[position * stride];
                            *out = if index == 0 { x } else { F::apply(*out, x) };
                        }
                    },
                );
            });
        }
        part.iter_mut().for_each(|out| *out = finish(*out));
        Ok(())
    })
}

/// As [`select`](super::select), on the workers of the request's queue if the tensors are large.
///
/// # Errors
///
/// As of [`select`](super::select), if types differ, and those of [`parallel::fill`].
pub fn select_into<T: Element>(
    execution: &ExecutionContext,
    condition: &DenseHostTensor,
    x: &DenseHostTensor,
    y: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<Bool>(condition.metadata())?;
    crate::dense::expect_dtype::<T>(x.metadata())?;
    crate::dense::expect_dtype::<T>(y.metadata())?;
    let walk = Broadcast::new([
        (&condition.shape().to_dims(), &condition.shape().strides()),
        (&x.shape().to_dims(), &x.shape().strides()),
        (&y.shape().to_dims(), &y.shape().strides()),
    ])?;
    expect_shape(walk.shape(), &out.shape().to_dims())?;
    let (condition, x, y) = (condition.clone(), x.clone(), y.clone());
    let chunk = parallel::chunk_len(2, 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let (condition, x, y) = (condition.read()?, x.read()?, y.read()?);
        let (condition, x, y) = (condition.elements()?, x.elements()?, y.elements()?);
        let mut done = 0;
        walk.walk(first, part.len(), |run| {
            let part = &mut part[done..done + run.len];
            done += run.len;
            let [a, b, c] = run.offsets;
            select_run(run.strides, &condition[a..], &x[b..], &y[c..], part);
        });
        Ok(())
    })
}
