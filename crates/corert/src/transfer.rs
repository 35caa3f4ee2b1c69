//! Tensors of other formats, and on other devices.

use tfrt_host::{Device, Error, ExecutionContext};
use tfrt_tensor::{Tensor, TensorFormat, convert};

use crate::TensorHandle;
use crate::caller::Caller;
use crate::context::Context;
use crate::device::DeviceId;
use crate::handle::{Home, Later, LaterMetadata};
use crate::telling::{Called, Telling};

/// What is converted by a [`Context`].
impl Context {
    /// Returns a handle to the tensor in a format, on a device: the same one where nothing changes.
    ///
    /// # Errors
    ///
    /// With the place of the caller: `InvalidArgument` for a handle of another runtime, for a device that keeps no tensors
    /// of that format, and for a tensor that can't be converted; if the tensor is to come, the handle fails.
    /// `InvalidArgument` for a value of this context's recording, unless it is known that nothing changes;
    /// `ResourceExhausted` if the tensor is to come and too many operations wait.
    #[track_caller]
    pub fn transfer(
        &self,
        handle: &TensorHandle,
        device: &Device,
        format: TensorFormat,
    ) -> Result<TensorHandle, Error> {
        let caller = Caller::here();
        let execution = self.execution();
        let transfer = Transfer {
            device,
            format,
            execution: &execution,
            caller,
        };
        let result = match handle.home().runtime == self.runtime().id() {
            false => Err(Error::invalid_argument(
                "the tensor to be transferred belongs to another runtime than the context",
            )),
            true if self.records(handle) && !transfer.is_needless(handle) => {
                Err(Error::invalid_argument(
                    "a transfer of a tensor that is recorded is no call of an operation, which alone can be recorded",
                ))
            }
            true => transfer.of(handle, || self.begin_waiting()),
        };
        result.map_err(|error| caller.locate("transfer", error))
    }
}

/// How tensors are transferred.
pub(crate) struct Transfer<'a> {
    pub(crate) device: &'a Device,
    pub(crate) format: TensorFormat,
    pub(crate) execution: &'a ExecutionContext,
    pub(crate) caller: Caller,
}

impl Transfer<'_> {
    /// Whether a tensor is known to be there already, as it should.
    fn is_needless(&self, handle: &TensorHandle) -> bool {
        let is_so = |tensor: &Tensor| tensor.format() == self.format;
        let is_here = handle.home().device == DeviceId::of(self.device);
        is_here && matches!(handle.tensor(), Some(Ok(tensor)) if is_so(tensor))
    }

    /// The tensor of a handle; if it is to come, what `begin` gives is kept until it is there.
    pub(crate) fn of<G: Send + 'static>(
        &self,
        handle: &TensorHandle,
        begin: impl FnOnce() -> Result<G, Error>,
    ) -> Result<TensorHandle, Error> {
        let (device, format) = (self.device, self.format);
        if device.type_name() != "cpu" {
            let (name, kind) = (device.name(), device.type_name());
            return Err(Error::invalid_argument(format!(
                "no tensor can be transferred to the device {name} of type {kind}: expected one of type cpu"
            )));
        }
        if self.is_needless(handle) {
            return Ok(handle.clone());
        }
        let home = Home {
            device: DeviceId::of(device),
            ..handle.home()
        };
        let allocator = self.execution.host().allocator().clone();
        let convert = move |tensor: &Tensor| match tensor.format() == format {
            true => Ok(tensor.clone()),
            false => convert::to_format(tensor, format, &allocator),
        };
        match handle.tensor() {
            Some(Err(error)) => Ok(TensorHandle::of_error(home, error.clone())),
            Some(Ok(tensor)) => Ok(TensorHandle::of_tensor(home, convert(tensor)?)),
            None => {
                let guard = begin()?;
                let metadata = match handle.metadata() {
                    Some(metadata) => LaterMetadata::Known(metadata.clone()),
                    None => LaterMetadata::Before(handle.described()),
                };
                let tensor = handle.to_async().try_map(move |tensor| {
                    let _counted = guard;
                    convert(tensor)
                });
                let telling = Telling::new(Called::Transfer, self.execution, self.caller);
                let later = Later::new(telling.result(tensor), metadata);
                let request = self.execution.request();
                Ok(TensorHandle::of_later(home, later, request))
            }
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
