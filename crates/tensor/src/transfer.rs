//! Transfers of tensors between devices.
//!
//! Which device copies is said by [`route`]. Other devices than the host keep dense tensors alone: what is of another
//! format is made dense first, and strings stay where they are.

use std::sync::Arc;

use tfrt_host::device::{Device, DeviceSlice, Route, Source, Target, route};
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};
use tfrt_host::{
    AsyncValue, Chain, DeviceId, DeviceRef, Error, ErrorCode, ExecutionContext, HostContext,
    RequestContext,
};

use crate::dense::no_memory;
use crate::{DenseHostTensor, DeviceTensor, Tensor, TensorFormat, TensorMetadata, convert};

/// Returns the tensor on a device: the same one, if it is there, or if both devices have the host's memory.
///
/// A tensor on another device than the host is there at once, and [ready](DeviceTensor::ready) when its elements are.
/// One on the host is there with its elements.
///
/// # Errors
///
/// `InvalidArgument` for a device of another host, and for a tensor of strings on another device than the host;
/// `ResourceExhausted` if there is no memory; `FailedPrecondition` if somebody is writing the tensor; the reason if
/// the request is cancelled. What goes wrong later fails the tensor, or its `ready`.
///
/// # Examples
///
/// ```
/// use tfrt_host::{ExecutionContext, HostContext, RequestContext, kernel::KernelRegistry};
/// use tfrt_tensor::{ScalarHostTensor, Tensor, TensorShape, transfer};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let execution = ExecutionContext::new(&RequestContext::new(&host));
/// let tensor = Tensor::from(ScalarHostTensor::new(TensorShape::SCALAR, 1.5_f32));
/// let other = host.devices().add_host("CPU:1")?;
/// assert!(transfer(&tensor, &other, &execution)?.is_settled());
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn transfer(
    tensor: &Tensor,
    to: &DeviceRef,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Tensor>, Error> {
    if let Some(reason) = execution.request().cancellation() {
        return Err(reason.clone());
    }
    let devices = execution.host().devices();
    let target = devices.contract(to)?;
    let on_device = match tensor {
        Tensor::Device(tensor) => tensor,
        tensor if target.memory().is_host() => return Ok(tensor.clone().into()),
        tensor => return Ok(upload(tensor, to, &target, execution)?.into()),
    };
    let source = devices.contract(on_device.device())?;
    if target.memory().is_host() {
        return download(on_device, &source, execution);
    }
    if on_device.device() == to {
        return Ok(tensor.clone().into());
    }
    let by = match route(&source, &target) {
        Route::BySource => &source,
        Route::ByTarget => &target,
        Route::Shared | Route::ThroughHost => {
            let (to, execution) = (to.clone(), execution.clone());
            let here = download(on_device, &source, &execution)?;
            let there = here.try_map(move |tensor| upload(tensor, &to, &target, &execution));
            return Ok(there);
        }
    };
    let metadata = on_device.metadata();
    let elements = allocate(metadata, &target, execution)?;
    let from = Source::Device(on_device.elements().clone());
    let after = [on_device.ready().as_any().clone()];
    let ready = by.copy(from, Target::Device(elements.clone()), &after);
    watch(&ready, execution.request());
    let tensor = DeviceTensor::new(to.clone(), metadata.clone(), elements, ready)?;
    Ok(Tensor::Device(tensor).into())
}

/// Returns the device that a tensor is on: the host's own, but for tensors in memory of others.
pub fn device_of(tensor: &Tensor) -> DeviceId {
    match tensor {
        Tensor::Device(tensor) => tensor.device().id(),
        _ => DeviceId::HOST,
    }
}

/// Returns the format that a tensor has on a device by default.
///
/// # Errors
///
/// `InvalidArgument` for strings on a device that keeps none, and for a device of another host.
pub fn default_format(
    format: TensorFormat,
    to: &DeviceRef,
    host: &HostContext,
) -> Result<TensorFormat, Error> {
    let is_host = host.devices().contract(to)?.memory().is_host();
    match (format, is_host) {
        (TensorFormat::StringHost, true) => Ok(format),
        (_, true) => Ok(TensorFormat::DenseHost),
        (TensorFormat::StringHost, false) => Err(Error::invalid_argument(format!(
            "failed to find dst device type for src_tensor_type={format} and dst_device_type={}",
            to.kind()
        ))),
        (_, false) => Ok(TensorFormat::Device),
    }
}

fn upload(
    tensor: &Tensor,
    to: &DeviceRef,
    target: &Arc<dyn Device>,
    execution: &ExecutionContext,
) -> Result<Tensor, Error> {
    let dense = match tensor {
        Tensor::Dense(dense) => dense.clone(),
        Tensor::String(_) => {
            let name = to.name();
            let message = format!("a tensor of strings stays on the host: {name} keeps none");
            return Err(Error::invalid_argument(message));
        }
        Tensor::Object(object) => {
            let (name, metadata) = (to.name(), object.metadata());
            let message = format!("a tensor of {metadata} stays on the host: {name} keeps none");
            return Err(Error::invalid_argument(message));
        }
        other => {
            let allocator = execution.host().allocator();
            let dense = convert::to_format(other, TensorFormat::DenseHost, allocator)?;
            dense.as_dense()?.clone()
        }
    };
    let metadata = dense.metadata().clone();
    let elements = allocate(&metadata, target, execution)?;
    let from = Source::Host(dense.into_buffer().read_owned()?);
    let ready = target.copy(from, Target::Device(elements.clone()), &[]);
    watch(&ready, execution.request());
    let tensor = DeviceTensor::new(to.clone(), metadata, elements, ready)?;
    Ok(Tensor::Device(tensor))
}

fn download(
    tensor: &DeviceTensor,
    source: &Arc<dyn Device>,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Tensor>, Error> {
    let metadata = tensor.metadata().clone();
    let allocator = execution.host().allocator();
    let buffer = HostBuffer::zeroed(allocator, metadata.len_bytes()?, BUFFER_ALIGNMENT)
        .ok_or_else(|| no_memory(&metadata))?;
    let from = Source::Device(tensor.elements().clone());
    let to = Target::Host(buffer.clone().write_owned()?);
    let copied = source.copy(from, to, &[tensor.ready().as_any().clone()]);
    watch(&copied, execution.request());
    Ok(copied.try_map(move |_| Ok(DenseHostTensor::new(metadata, buffer)?.into())))
}

/// Allocates a tensor in memory of a device, for the result of a kernel there. The kernel writes every element, and
/// settles `ready` when readers on the device may enqueue work.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory, `InvalidArgument` for a device of another host.
pub fn allocate_on(
    device: &DeviceRef,
    metadata: TensorMetadata,
    ready: AsyncValue<Chain>,
    execution: &ExecutionContext,
) -> Result<DeviceTensor, Error> {
    let contract = execution.host().devices().contract(device)?;
    let elements = allocate(&metadata, &contract, execution)?;
    watch(&ready, execution.request());
    DeviceTensor::new(device.clone(), metadata, elements, ready)
}

/// Allocates memory of a device; if there is none, once more after the device has freed idle memory.
fn allocate(
    metadata: &TensorMetadata,
    device: &Arc<dyn Device>,
    execution: &ExecutionContext,
) -> Result<DeviceSlice, Error> {
    let len_bytes = metadata.len_bytes()?;
    let ask = || device.allocate(execution.request(), len_bytes, BUFFER_ALIGNMENT);
    let memory = match ask() {
        Err(error) if error.code() == ErrorCode::ResourceExhausted => {
            device.trim();
            ask()?
        }
        memory => memory?,
    };
    let found = memory.len_bytes();
    DeviceSlice::new(memory, 0..len_bytes).ok_or_else(|| {
        let name = device.name();
        Error::internal(format!(
            "{name} was asked for {len_bytes} bytes and gave {found}"
        ))
    })
}

/// Marks a device as working for a request until a copy is over.
fn watch(copied: &AsyncValue<Chain>, request: &Arc<RequestContext>) {
    if !copied.is_settled() {
        let guard = request.external();
        copied.clone().when_settled(move |_| drop(guard));
    }
}
