//! Kernels that convert between handles and tensors, shapes or numbers; transfers; printing.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{AsyncValue, Chain, DeviceRef, Error, ExecutionContext, Heap, Value};
use tfrt_tensor::{DType, Tensor, TensorFormat, TensorShape, convert, default_format};

use super::{handle_as_value, runtime};
use crate::TensorHandle;
use crate::call_site::CallSite;
use crate::transfer::Transfer;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.ht_to_tensorhandle", from_tensor)
        .add("corert.tensorhandle_to_ht", to_tensor)
        .add("corert.tensorhandle_to_shape", to_shape)
        .add("corert.tensorhandle_to_int32", to_i32)
        .add("corert.print_tensorhandle", print)
        .add("corert_sync.print_tensorhandle", print_synchronously)
        .add("corert.transfer", transfer_to)
        .add("corert.transfer_inferred_tensortype", transfer_to_device)
        .add("corert.get_dst_tensor_type", format_on)
        .add("tfrt_test.error_tensorhandle", failed)
        .add("tfrt_test.get_static_tensor_type", format_of_name)
        .add("tfrt_test.print_tensor_type", print_format)
        .add(
            "tfrt_test.tensorhandle_with_error_metadata",
            without_metadata,
        );
}

/// A format of tensors as a value, and its name.
#[derive(Clone, Copy, Debug)]
struct FormatValue(TensorFormat, &'static str);

impl FormatValue {
    /// Returns the format that tensors have on a device, by the name that the device gives it.
    fn on(
        device: &DeviceRef,
        format: TensorFormat,
        execution: &ExecutionContext,
    ) -> Result<FormatValue, Error> {
        let devices = execution.host().devices();
        Ok(match format {
            TensorFormat::Device => FormatValue(format, devices.contract(device)?.tensor_format()),
            format => FormatValue(format, format.name()),
        })
    }
}

impl Value for FormatValue {
    const NAME: &'static str = "!tfrt.tensor_type";
    type Storage = Heap;
}

/// `%h = "corert.ht_to_tensorhandle"(%t, %c)`
fn from_tensor(tensor: &Tensor, _: Chain, execution: &ExecutionContext) -> TensorHandle {
    runtime(execution).handle(tensor.clone())
}

/// `%t = "corert.tensorhandle_to_ht"(%h, %c)`
fn to_tensor(handle: &TensorHandle, _: Chain) -> Result<Tensor, Error> {
    tensor_of(handle).cloned()
}

/// `%s = "corert.tensorhandle_to_shape"(%h, %c)`
fn to_shape(handle: &TensorHandle, _: Chain) -> Result<TensorShape, Error> {
    match (handle.shape(), handle.error()) {
        (Some(shape), _) => Ok(shape.clone()),
        (None, Some(error)) => Err(error.clone()),
        (None, None) => Err(not_there()),
    }
}

/// `%n = corert.tensorhandle_to_int32 %h`
fn to_i32(handle: &TensorHandle, execution: &ExecutionContext) -> Result<i32, Error> {
    let tensor = tensor_of(handle)?;
    let metadata = tensor.metadata();
    if metadata.dtype != DType::I32 || metadata.n_elements()? != 1 || metadata.shape.rank() > 1 {
        return Err(Error::invalid_argument(format!(
            "expected a tensor of one i32, without dimensions or of one, found {metadata}"
        )));
    }
    let dense;
    let dense = match tensor {
        Tensor::Dense(own) => own,
        other => {
            dense =
                convert::to_format(other, TensorFormat::DenseHost, execution.host().allocator())?;
            dense.as_dense()?
        }
    };
    let reading = dense.read()?;
    let first = reading.elements::<i32>()?.first().copied();
    first.ok_or_else(|| Error::internal("a tensor of one element has none"))
}

/// `%c1 = "corert.print_tensorhandle"(%h, %c0)`
fn print(handle: &TensorHandle, _: Chain, execution: &ExecutionContext) -> Result<Chain, Error> {
    print_synchronously(handle, execution)?;
    Ok(Chain)
}

/// `"corert_sync.print_tensorhandle"(%h)`
fn print_synchronously(handle: &TensorHandle, execution: &ExecutionContext) -> Result<(), Error> {
    let text = tensor_of(handle)?.to_text()?;
    execution.host().output().print(text);
    Ok(())
}

/// `%r = corert.transfer %h, %device, %type`
fn transfer_to(
    handle: &TensorHandle,
    device: &DeviceRef,
    format: &FormatValue,
    execution: &ExecutionContext,
) -> Result<AsyncValue<TensorHandle>, Error> {
    let transfer = Transfer {
        device,
        format: format.0,
        execution,
        caller: CallSite::Kernel,
    };
    Ok(there(transfer.of(handle, || Ok(()))?))
}

/// Returns the value of a handle when its tensor is there.
fn there(handle: TensorHandle) -> AsyncValue<TensorHandle> {
    let value = handle_as_value(handle).downcast();
    value.unwrap_or_else(|_| AsyncValue::from_error(Error::internal("a handle is none")))
}

/// `%r = corert.transfer_inferred_tensortype %h, %device`
fn transfer_to_device(
    handle: &TensorHandle,
    device: &DeviceRef,
    execution: &ExecutionContext,
) -> Result<AsyncValue<TensorHandle>, Error> {
    if handle.device() == device.id() {
        return Ok(handle.clone().into());
    }
    let format = default_format(tensor_of(handle)?.format(), device, execution.host())?;
    let format = FormatValue::on(device, format, execution)?;
    transfer_to(handle, device, &format, execution)
}

/// `%type = corert.get_dst_tensor_type %h, %device`
fn format_on(
    handle: &TensorHandle,
    device: &DeviceRef,
    execution: &ExecutionContext,
) -> Result<FormatValue, Error> {
    let format = tensor_of(handle)?.format();
    let format = default_format(format, device, execution.host())?;
    FormatValue::on(device, format, execution)
}

/// `%type = "tfrt_test.get_static_tensor_type"() {tensor_type = "DenseHost"}`
fn format_of_name(tensor_type: Attr<&str>) -> Result<FormatValue, Error> {
    let name = *tensor_type;
    let mut all = [
        TensorFormat::DenseHost,
        TensorFormat::ScalarHost,
        TensorFormat::CooHost,
        TensorFormat::StringHost,
    ]
    .into_iter();
    if let Some(format) = all.find(|format| format.name() == name) {
        return Ok(FormatValue(format, format.name()));
    }
    match name {
        "DenseGpu" => Ok(FormatValue(TensorFormat::Device, "DenseGpu")),
        _ => Err(Error::invalid_argument(format!(
            "expected DenseHost, ScalarHost, CooHost, StringHost or DenseGpu as tensor_type, found '{}'",
            name.escape_debug()
        ))),
    }
}

/// `%c1 = "tfrt_test.print_tensor_type"(%type, %c0)`
fn print_format(format: &FormatValue, _: Chain, execution: &ExecutionContext) -> Chain {
    let text = format!("tensor_type = {}", format.1);
    execution.host().output().print(text);
    Chain
}

/// `%h = "tfrt_test.error_tensorhandle"()`
fn failed() -> Result<TensorHandle, Error> {
    Err(Error::unknown("invalid tensorhandle"))
}

/// `%h = "tfrt_test.tensorhandle_with_error_metadata"(%t, %c)`
fn without_metadata(_: &Tensor, _: Chain) -> Result<TensorHandle, Error> {
    Err(Error::unknown("invalid tensor metadata"))
}

/// Returns the tensor of a handle in a register, which is there.
fn tensor_of(handle: &TensorHandle) -> Result<&Tensor, Error> {
    match handle.tensor() {
        Some(Ok(tensor)) => Ok(tensor),
        Some(Err(error)) => Err(error.clone()),
        None => Err(not_there()),
    }
}

#[cold]
fn not_there() -> Error {
    Error::internal("the tensor of a handle in a register is still to come")
}
