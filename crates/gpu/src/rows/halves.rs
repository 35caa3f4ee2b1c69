//! Rows of half precision, by the kernels of `f32`: operands are widened, and what is calculated is rounded, once.

use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, DType, Error, Promise, when_all};
use tfrt_ops::KernelQuery;
use tfrt_tensor::op::{DeviceCall, OpCall, OpResults, select};
use tfrt_tensor::{DeviceTensor, Tensor, TensorMetadata, allocate_on};

use super::{KERNELS, moves};
use crate::KIND;

/// Runs a row on operands of `f16` and `bf16` by its kernel for `f32`.
pub(super) fn run(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let name = call.op.name;
    let query = KernelQuery {
        op: name,
        attrs: call.attrs,
        types: &[Some(DType::F32)],
        n_results: Some(call.n_results),
    };
    let kernel = select(KERNELS, KIND, &query);
    let kernel = kernel.ok_or_else(|| Error::internal(format!("{name}: no kernel for f32")))?;
    // Says of which types results are.
    let own = DeviceCall::with_host(call, kernel.on_host)?;
    let widened = |input: &AnyAsyncValue| match input.get::<Tensor>() {
        Some(Tensor::Device(tensor)) if is_half(tensor.metadata().dtype) => {
            let wide = cast(&own, tensor, DType::F32)?;
            Ok(AnyAsyncValue::new(Tensor::Device(wide)))
        }
        _ => Ok(input.clone()),
    };
    let inputs: Vec<AnyAsyncValue> = call
        .inputs
        .iter()
        .map(widened)
        .collect::<Result<_, Error>>()?;
    let results = (kernel.run)(&OpCall {
        inputs: &inputs,
        ..*call
    })?;
    let rounded = |(index, result): (usize, AnyAsyncValue)| {
        let wanted = own.result(index).map(|metadata| metadata.dtype);
        match (result.get::<Tensor>(), wanted) {
            (Some(Tensor::Device(tensor)), Some(dtype)) if tensor.metadata().dtype != dtype => {
                let rounded = cast(&own, tensor, dtype)?;
                Ok(AnyAsyncValue::new(Tensor::Device(rounded)))
            }
            _ => Ok(result),
        }
    };
    results.into_iter().enumerate().map(rounded).collect()
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16)
}

/// Returns a tensor with elements of another type, which is ready when that is queued.
fn cast(call: &DeviceCall<'_>, x: &DeviceTensor, dtype: DType) -> Result<DeviceTensor, Error> {
    let metadata = TensorMetadata {
        dtype,
        ..x.metadata().clone()
    };
    let (done, ready): (Promise<Chain>, _) = AsyncValue::pending();
    let y = allocate_on(call.device, metadata, ready, call.execution)?;
    let (to, from) = (y.clone(), x.clone());
    let after = [x.ready().as_any().clone()];
    when_all(&after).when_settled(move |all| {
        let made = match all.error() {
            Some(error) => Err(error.clone()),
            None => moves::cast_elements(&to, &from),
        };
        // Rights to the memory end before readers begin.
        drop((to, from));
        done.complete(made.map(|()| Chain));
    });
    Ok(y)
}
