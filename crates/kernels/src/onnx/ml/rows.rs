//! [`Rows`]: rows of features, and results that are calculated row by row.

use std::num::NonZeroUsize;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{DType, DenseHostTensor, Element, from_bytes_mut};

use super::super::NodeCall;
use super::super::dispatch::with_real;

/// The first operand as rows of features: `[features]` is one row.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// The features, as `f32`, or as `f64` if the operand was.
    pub(super) tensor: DenseHostTensor,
    pub(super) n_rows: usize,
    pub(super) n_features: usize,
}

impl Rows {
    /// Returns the rows of the first operand, each with `n_features` features or more.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is something else.
    pub(super) fn new(node: &NodeCall<'_>, n_features: usize) -> Result<Rows, Error> {
        let x = node.inputs.dense(0)?;
        let (n_rows, found) = match x.shape().to_dims()[..] {
            [n_features] => (1, n_features),
            [n_rows, n_features] => (n_rows, n_features),
            ref other => {
                let message =
                    format_args!("is expected to have one dimension or two, found {other:?}");
                return Err(node.inputs.error(0, message));
            }
        };
        if found < n_features {
            let message = format_args!(
                "is expected to have {n_features} features in each row, found {found}"
            );
            return Err(node.inputs.error(0, message));
        }
        let tensor = match x.dtype() {
            DType::F32 | DType::F64 => x.clone(),
            other => with_real!(other, T => {
                node.workspace.reserve(x.n_elements(), size_of::<f32>())?;
                let reading = x.read()?;
                let numbers = reading.elements::<T>()?.iter().map(|x| f32::from_f64(x.to_f64()));
                node.tensor_of(&x.shape().to_dims(), &numbers.collect::<Vec<_>>())?
            }, else return Err(node.inputs.unsupported(0, other))),
        };
        Ok(Rows {
            tensor,
            n_rows,
            n_features: found,
        })
    }

    /// Converts features to `f32`.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for them.
    pub(super) fn narrowed(mut self, node: &NodeCall<'_>) -> Result<Rows, Error> {
        if self.tensor.dtype() == DType::F64 {
            let reading = self.tensor.read()?;
            let numbers = reading
                .elements::<f64>()?
                .iter()
                .copied()
                .map(f32::from_f64);
            let extents = self.tensor.shape().to_dims();
            let narrow = node.tensor_of(&extents, &numbers.collect::<Vec<_>>())?;
            drop(reading);
            self.tensor = narrow;
        }
        Ok(self)
    }

    /// Returns the features of rows from `start` to `end`, one row behind the other.
    pub(super) fn part<'e, T>(&self, elements: &'e [T], start: usize, end: usize) -> &'e [T] {
        &elements[start * self.n_features..end * self.n_features]
    }
}

/// Fills two tensors row by row, in chunks on the queue's workers: `body(start, end, a, b)` makes the rows from
/// `start` to `end`, of which each has so many elements in `a` and in `b`.
pub(super) fn fill_two<A: Element, B: Element>(
    execution: &ExecutionContext,
    n_rows: usize,
    chunk: NonZeroUsize,
    (a, a_width): (&DenseHostTensor, usize),
    (b, b_width): (&DenseHostTensor, usize),
    body: impl Fn(usize, usize, &mut [A], &mut [B]) -> Result<(), Error> + Send + Sync + 'static,
) -> AsyncValue<Chain> {
    if n_rows == 0 {
        return AsyncValue::available(Chain);
    }
    let (a_bytes, b_bytes) = (a_width * size_of::<A>(), b_width * size_of::<B>());
    let (a, b) = (a.buffer().clone(), b.buffer().clone());
    execution.parallel_for(0..n_rows, chunk, move |start, end| {
        let within = "chunks are within";
        let a = a.slice(start * a_bytes..end * a_bytes).expect(within);
        let b = b.slice(start * b_bytes..end * b_bytes).expect(within);
        let (mut a, mut b) = (a.write()?, b.write()?);
        body(start, end, from_bytes_mut(&mut a)?, from_bytes_mut(&mut b)?)
    })
}
