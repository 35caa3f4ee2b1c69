//! Kernels that send and receive values.

#![allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::{DenseHostTensor, Tensor};

use crate::context::{ContextRef, bounds_of};
use crate::device::{metadata_from_bytes, metadata_to_bytes};
use crate::ids::TaskHandle;
use crate::message::Payload;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dist.send_bytes", send)
        .add("tfrt_dist.recv_bytes", receive)
        .add("tfrt_dist.serialize", serialize)
        .add("tfrt_dist.deserialize", deserialize);
}

/// `%c = tfrt_dist.send_bytes %ctx, %task, %key, %payload`: the chain is there when the other task has the value.
fn send(
    context: &ContextRef,
    task: TaskHandle,
    key: &String,
    payload: &Payload,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let (bounds, hook) = bounds_of(execution.request());
    let sent = context.send(task, key, payload.clone(), bounds);
    let (promise, chain) = execution.promise();
    let held = context.clone();
    sent.when_settled(move |sent| {
        drop(hook);
        promise.forward(sent);
        drop(held);
    });
    chain
}

/// `%payload = tfrt_dist.recv_bytes %ctx, %task, %key`
fn receive(
    context: &ContextRef,
    task: TaskHandle,
    key: &String,
    execution: &ExecutionContext,
) -> AsyncValue<Payload> {
    let (promise, payload) = execution.promise();
    let held = context.clone();
    let (received, hook) = context.receive_for(execution.request(), task, key);
    received.when_settled(move |received| {
        drop(hook);
        promise.forward(received);
        drop(held);
    });
    payload
}

/// `%payload = tfrt_dist.serialize %t, %c`: type and shape, then the elements, where they lie.
fn serialize(tensor: &Tensor, _: Chain) -> Result<Payload, Error> {
    let dense = tensor.as_dense()?;
    let metadata = metadata_to_bytes(dense.metadata());
    let elements = dense.buffer().clone();
    Ok(Payload(vec![HostBuffer::from_owner(metadata), elements]))
}

/// `%t = tfrt_dist.deserialize %payload`
fn deserialize(payload: &Payload, execution: &ExecutionContext) -> Result<Tensor, Error> {
    let [metadata, elements] = payload.0.as_slice() else {
        return Err(Error::invalid_argument(format!(
            "expected a serialized tensor of 2 buffers, found {}",
            payload.0.len()
        )));
    };
    let metadata = metadata_from_bytes(&metadata.read()?)?;
    let alignment = metadata.dtype.alignment_bytes().unwrap_or(1);
    let tensor = match elements.address().is_multiple_of(alignment) {
        true => DenseHostTensor::new(metadata, elements.clone())?,
        false => DenseHostTensor::from_bytes(execution.allocator(), metadata, &elements.read()?)?,
    };
    Ok(tensor.into())
}
