//! An adapter of kernels on images whose channels come last to images whose channels come first.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_ops::tf::images::has_channels_first;
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::op::{Operands, Output, Outputs, TensorCall, made};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata, TensorShape, with_element};

use super::of_call;

/// Runs a kernel on images whose channels come last. Where they come first, these operands are transposed before, and
/// the first result after.
pub(super) fn with_channels_last(
    call: &mut TensorCall<'_>,
    images: &[usize],
    gives_images: bool,
    run: impl Fn(&mut TensorCall<'_>) -> Result<Outputs, Error>,
) -> Result<Outputs, Error> {
    if !has_channels_first(&call.attrs).map_err(of_call(call))? {
        return run(call);
    }
    let mut operands = TransposedOperands {
        given: SmallVec::new(),
    };
    for index in 0..call.n_inputs() {
        let given = call.tensor(index)?.clone();
        operands.given.push(Some(match images.contains(&index) {
            true => last(call, given.as_dense()?)?.into(),
            false => given,
        }));
    }
    let mut results: SmallVec<[TensorMetadata; 2]> = call.results.iter().cloned().collect();
    if let Some(first) = results.first_mut().filter(|_| gives_images) {
        let extents = first.shape.to_dims();
        let order = channel_order(extents.len(), true);
        let extents: SmallVec<[usize; 6]> = order.iter().map(|at| extents[*at]).collect();
        first.shape = TensorShape::new(&extents)?;
    }
    let mut outputs = run(&mut TensorCall {
        op: call.op,
        name: call.name,
        attrs: call.attrs,
        operands: &mut operands,
        results: &results,
        n_results: call.n_results,
        execution: call.execution,
        effects: None,
        waiting: None,
    })?;
    if let Some(first) = outputs.first_mut().filter(|_| gives_images) {
        let out = call.output(0)?;
        let placeholder = Output::Ready(out.clone().into());
        *first = match std::mem::replace(first, placeholder) {
            Output::Ready(tensor) => {
                let chain = first_into(call.execution, tensor.as_dense()?, &out)?;
                made(out, chain)?
            }
            Output::Later(later) => {
                let execution = call.execution.clone();
                Output::Later(later.and_then_value(move |tensor| {
                    let chain = tensor
                        .as_dense()
                        .and_then(|x| first_into(&execution, x, &out));
                    match chain {
                        Ok(chain) => chain.map(move |_| out.into()),
                        Err(error) => AsyncValue::from_error(error),
                    }
                }))
            }
        };
    }
    Ok(outputs)
}

/// Returns the permutation that puts channels last, or back to the second dimension.
fn channel_order(rank: usize, to_last: bool) -> SmallVec<[usize; 6]> {
    let mut order: SmallVec<[usize; 6]> = (0..rank).collect();
    match to_last {
        true => order[1.min(rank)..].rotate_left(1.min(rank.saturating_sub(1))),
        false => order[1.min(rank)..].rotate_right(1.min(rank.saturating_sub(1))),
    }
    order
}

/// Transposes images to channels last.
fn last(call: &TensorCall<'_>, x: &DenseHostTensor) -> Result<DenseHostTensor, Error> {
    let extents = x.shape().to_dims();
    let movement = LayoutCopy::transpose(&extents, &channel_order(extents.len(), true))?;
    let (dtype, out) = (x.dtype(), call.allocate(movement.metadata(x.metadata())?)?);
    {
        let (x, mut out) = (x.read()?, out.write()?);
        with_element!(dtype, T => movement.run(&x.view::<T>()?, &mut out.view_mut::<T>()?)?, else ());
    }
    Ok(out)
}

/// Transposes images with channels last to channels first.
fn first_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let extents = x.shape().to_dims();
    let movement = LayoutCopy::transpose(&extents, &channel_order(extents.len(), false))?;
    movement.run_into(execution, x, out)
}

/// The operands of a kernel, some of them transposed.
struct TransposedOperands {
    given: SmallVec<[Option<Tensor>; 6]>,
}

impl Operands for TransposedOperands {
    fn len(&self) -> usize {
        self.given.len()
    }

    fn get(&self, index: usize) -> Option<&Tensor> {
        self.given.get(index)?.as_ref()
    }

    fn take_sole(&mut self, _: usize) -> Option<DenseHostTensor> {
        None
    }

    fn put_back(&mut self, index: usize, tensor: DenseHostTensor) {
        if let Some(given) = self.given.get_mut(index) {
            *given = Some(tensor.into());
        }
    }
}
