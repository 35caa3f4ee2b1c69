//! Tensors of other formats, and on other devices.

use tfrt_host::{Device, Error};
use tfrt_tensor::{TensorFormat, convert};

use crate::TensorHandle;
use crate::caller::Caller;
use crate::context::Context;
use crate::device::DeviceId;
use crate::handle::{Home, Later, LaterMetadata};

/// What is converted by a [`Context`].
impl Context {
    /// Returns a handle to the tensor in a format, on a device: the same one where nothing changes.
    ///
    /// # Errors
    ///
    /// With the place of the caller: `InvalidArgument` for a handle of another runtime, for a device that keeps no tensors
    /// of that format, and for a tensor that can't be converted; if the tensor is to come, the handle fails.
    #[track_caller]
    pub fn transfer(
        &self,
        handle: &TensorHandle,
        device: &Device,
        format: TensorFormat,
    ) -> Result<TensorHandle, Error> {
        let caller = Caller::here();
        let result = match handle.home().runtime == self.runtime().id() {
            true => transfer(handle, device, format, self.execution()),
            false => Err(Error::invalid_argument(
                "the tensor to be transferred belongs to another runtime than the context",
            )),
        };
        result.map_err(|error| caller.locate("transfer", error))
    }
}

/// The same for kernels.
pub(crate) fn transfer(
    handle: &TensorHandle,
    device: &Device,
    format: TensorFormat,
    execution: &tfrt_host::ExecutionContext,
) -> Result<TensorHandle, Error> {
    if device.type_name() != "cpu" {
        let (name, kind) = (device.name(), device.type_name());
        return Err(Error::invalid_argument(format!(
            "no tensor can be transferred to the device {name} of type {kind}: expected one of type cpu"
        )));
    }
    let home = Home {
        device: DeviceId::of(device),
        ..handle.home()
    };
    let allocator = execution.host().allocator().clone();
    match handle.tensor() {
        Some(Err(error)) => Ok(TensorHandle::of_error(home, error.clone())),
        Some(Ok(tensor)) if tensor.format() == format => {
            Ok(TensorHandle::of_tensor(home, tensor.clone()))
        }
        Some(Ok(tensor)) => {
            let converted = convert::to_format(tensor, format, &allocator)?;
            Ok(TensorHandle::of_tensor(home, converted))
        }
        None => {
            let metadata = match handle.metadata() {
                Some(metadata) => LaterMetadata::Known(metadata.clone()),
                None => LaterMetadata::Before(handle.described()),
            };
            let tensor = handle
                .to_async()
                .try_map(move |tensor| match tensor.format() == format {
                    true => Ok(tensor.clone()),
                    false => convert::to_format(tensor, format, &allocator),
                });
            let later = Later { tensor, metadata };
            Ok(TensorHandle::of_later(home, later, execution.request()))
        }
    }
}

/// In which format a tensor is kept on a device by default.
///
/// # Errors
///
/// `InvalidArgument` for types of devices that keep no tensors.
pub fn default_format(format: TensorFormat, device: &Device) -> Result<TensorFormat, Error> {
    match (format, device.type_name()) {
        (TensorFormat::StringHost, _) => Ok(format),
        (_, "cpu") => Ok(TensorFormat::DenseHost),
        (_, found) => Err(Error::invalid_argument(format!(
            "failed to find dst device type for src_tensor_type={format} and dst_device_type={found}"
        ))),
    }
}
