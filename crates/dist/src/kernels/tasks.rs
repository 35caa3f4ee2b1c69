//! Kernels on names and chains of tasks, and handlers of their devices.

use std::sync::Arc;

use tfrt_corert::{OpHandlerRef, TensorHandle};
use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, DeviceRef, Error, ExecutionContext};

use crate::context::ContextRef;
use crate::device::remote_id;
use crate::ids::TaskHandle;
use crate::names::{RemoteChains, RemoteId};
use crate::op_handler::RemoteOpHandler;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dist.get_task_handle", task_handle)
        .add("tfrt_dist.get_distributed_context", distributed_context)
        .add("tfrt_dist.get_chain_for_task_handle", chain_of)
        .add("tfrt_dist.set_chain_for_task_handle", set_chain_of)
        .add("tfrt_dist.get_remote_object_id_from_th", id_of)
        .add("tfrt_dist.create_remote_op_handler", op_handler);
}

/// `%task = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}`
fn task_handle(context: &ContextRef, task_name: Attr<&str>) -> Result<TaskHandle, Error> {
    context.task_handle(*task_name)
}

/// `%ctx = tfrt_dist.get_distributed_context`
fn distributed_context(execution: &ExecutionContext) -> Result<ContextRef, Error> {
    let context = execution.request().data::<ContextRef>();
    let context = context.ok_or_else(|| {
        Error::not_found(
            "there is no distributed context: the request was not made by another task, nor given one",
        )
    })?;
    Ok(ContextRef::clone(&context))
}

/// `%id = tfrt_dist.get_chain_for_task_handle %c, %manager, %task`
fn chain_of(_: Chain, chains: &RemoteChains, task: TaskHandle) -> Result<RemoteId, Error> {
    chains.get(task)
}

/// `%c1 = tfrt_dist.set_chain_for_task_handle %c, %manager, %task, %id`
fn set_chain_of(
    chain: Chain,
    chains: &RemoteChains,
    task: TaskHandle,
    id: &RemoteId,
) -> Result<Chain, Error> {
    chains.set(task, id.clone())?;
    Ok(chain)
}

/// `%id = tfrt_dist.get_remote_object_id_from_th %h`
fn id_of(handle: &TensorHandle) -> Result<RemoteId, Error> {
    let id = match handle.tensor() {
        Some(Ok(tensor)) => remote_id(tensor).cloned(),
        Some(Err(error)) => return Err(error.clone()),
        None => None,
    };
    id.ok_or_else(|| Error::invalid_argument("TensorHandle is not a RemoteTensor"))
}

/// `%handler = tfrt_dist.create_remote_op_handler %ctx, %manager, %device`
fn op_handler(
    context: &ContextRef,
    chains: &RemoteChains,
    device: &DeviceRef,
) -> Result<OpHandlerRef, Error> {
    let handler = RemoteOpHandler::new(context, chains, device.clone())?;
    Ok(OpHandlerRef(Arc::new(handler)))
}
