//! Operands of which one is dense, and the other's elements are all the same.

use smallvec::SmallVec;
use tfrt_host::Error;
use tfrt_tensor::{Tensor, TensorShape};

use crate::TensorHandle;
use crate::call::Call;
use crate::definition::Outputs;
use crate::inputs::Inputs;

/// Calls `run` with dense operands only. Where the result has the shape of the dense operand, the other becomes a
/// tensor of one element.
pub(super) fn with_dense(
    call: &mut Call<'_>,
    run: impl FnOnce(&mut Call<'_>) -> Result<Outputs, Error>,
) -> Result<Outputs, Error> {
    let shape = &call.result(0)?.shape;
    let allocator = call.execution.host().allocator();
    let is_whole =
        |tensor: &Tensor| matches!(tensor, Tensor::Dense(_)) && tensor.metadata().shape == *shape;
    let is_one_enough = (0..call.n_inputs()).any(|index| call.tensor(index).is_ok_and(is_whole));
    let inputs = std::mem::replace(&mut call.inputs, Inputs::lent(&[]));
    let mut handles: SmallVec<[TensorHandle; 2]> = inputs.into_vec();
    for handle in &mut handles {
        let Some(Ok(Tensor::Scalar(scalar))) = handle.tensor() else {
            continue;
        };
        let dense = match is_one_enough {
            true => scalar.with_shape(TensorShape::SCALAR).to_dense(allocator)?,
            false => scalar.to_dense(allocator)?,
        };
        *handle = TensorHandle::of_tensor(handle.home(), dense.into());
    }
    run(&mut Call {
        op: call.op,
        execution: call.execution,
        inputs: Inputs::owned(&mut handles),
        attrs: call.attrs,
        metadata: call.metadata,
    })
}
