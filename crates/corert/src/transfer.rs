//! Tensors of other formats, and on other devices.

use tfrt_host::{AsyncValue, DeviceRef, Error, ExecutionContext};
use tfrt_tensor::{Tensor, TensorFormat, convert, transfer};

use crate::TensorHandle;
use crate::call_site::CallSite;
use crate::context::Context;
use crate::error_reporter::{ErrorReporter, FailedCall};
use crate::handle::{Owner, PendingMetadata, PendingTensor};

/// Transfers of tensors to other formats and devices.
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
        device: &DeviceRef,
        format: TensorFormat,
    ) -> Result<TensorHandle, Error> {
        let caller = CallSite::here();
        let execution = self.execution();
        let transfer = Transfer {
            device,
            format,
            execution: &execution,
            caller,
        };
        let result = match handle.owner().runtime == self.runtime().id() {
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

/// A transfer of a tensor to a format on a device.
pub(crate) struct Transfer<'a> {
    pub(crate) device: &'a DeviceRef,
    pub(crate) format: TensorFormat,
    pub(crate) execution: &'a ExecutionContext,
    pub(crate) caller: CallSite,
}

impl Transfer<'_> {
    /// Returns whether a tensor is known to be there already, as it should.
    fn is_needless(&self, handle: &TensorHandle) -> bool {
        let is_so = |tensor: &Tensor| tensor.format() == self.format;
        let is_here = handle.owner().device == self.device.id();
        is_here && matches!(handle.tensor(), Some(Ok(tensor)) if is_so(tensor))
    }

    /// Transfers the tensor of a handle. For a pending tensor, the guard that `begin` makes is kept until it is
    /// there.
    pub(crate) fn of<G: Send + 'static>(
        &self,
        handle: &TensorHandle,
        begin: impl FnOnce() -> Result<G, Error>,
    ) -> Result<TensorHandle, Error> {
        let contract = self.execution.host().devices().contract(self.device)?;
        let is_host = contract.memory().is_host();
        if is_host == (self.format == TensorFormat::Device) {
            let (name, format) = (self.device.name(), self.format);
            return Err(Error::invalid_argument(format!(
                "the device {name} keeps no tensors of the format {format}"
            )));
        }
        if self.is_needless(handle) {
            return Ok(handle.clone());
        }
        let owner = Owner {
            device: self.device.id(),
            ..handle.owner()
        };
        let known = match handle.tensor() {
            Some(Err(error)) => return Ok(TensorHandle::of_error(owner, error.clone())),
            Some(Ok(tensor)) => Some(moved(tensor, self.device, self.format, self.execution)?),
            None => None,
        };
        if let Some(Ok(tensor)) = known.as_ref().and_then(|tensor| tensor.get()) {
            return Ok(TensorHandle::of_tensor(owner, tensor.clone()));
        }
        let guard = begin()?;
        let metadata = match handle.metadata() {
            Some(metadata) => PendingMetadata::Known(metadata.clone()),
            None => PendingMetadata::Before(handle.described()),
        };
        let tensor = known.unwrap_or_else(|| {
            let (device, format) = (self.device.clone(), self.format);
            let execution = self.execution.clone();
            handle.to_async().and_then_value(move |tensor| {
                moved(tensor, &device, format, &execution).unwrap_or_else(AsyncValue::from_error)
            })
        });
        let tensor = tensor.map(move |tensor| {
            let _counted = guard;
            tensor.clone()
        });
        let telling = ErrorReporter::new(FailedCall::Transfer, self.execution, self.caller);
        let later = PendingTensor::new(telling.result(tensor), metadata);
        let request = self.execution.request();
        Ok(TensorHandle::of_pending(owner, later, request))
    }
}

/// Returns a tensor on a device, in a format.
fn moved(
    tensor: &Tensor,
    device: &DeviceRef,
    format: TensorFormat,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Tensor>, Error> {
    if let Tensor::Device(own) = tensor
        && !matches!(format, TensorFormat::DenseHost | TensorFormat::Device)
    {
        let devices = execution.host().devices();
        let own = devices.contract(own.device())?.tensor_format();
        let message = format!("cannot find conversion function for [{own}]->[{format}]");
        return Err(Error::invalid_argument(message));
    }
    let allocator = execution.host().allocator().clone();
    let convert = move |tensor: &Tensor| match tensor.format() == format {
        true => Ok(tensor.clone()),
        false => convert::to_format(tensor, format, &allocator),
    };
    let there = transfer(tensor, device, execution)?;
    match there.get() {
        Some(Ok(tensor)) => convert(tensor).map(AsyncValue::available),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(there.try_map(convert)),
    }
}
