//! [`TensorHandle`]: a tensor that may be pending, with its device and, if known, its type and shape.

use std::fmt;
use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, AsyncValue, DeviceId, Error, Heap, Record, RequestContext, Value};
use tfrt_tensor::{DType, DenseHostTensor, ObjectTensor, Tensor, TensorMetadata, TensorShape};

use crate::cancellation::{StateAtCancel, until_cancelled};
use crate::runtime::RuntimeId;

/// A handle to a finished tensor, to a pending one, or to an error.
///
/// Type and shape are known at once wherever they can be, the device always. Clones lead to the same tensor.
/// An operation that is given the only handle to a tensor may write its result into the memory of that tensor. Nobody
/// else writes to a tensor that had no other holder when its handle was made: [`DenseHostTensor::write`] refuses.
///
/// # Examples
///
/// ```
/// use tfrt_corert::CoreRuntime;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
/// let handle = runtime.dense(&[2], &[1.0_f32, 2.0])?;
/// assert_eq!(handle.metadata().unwrap().to_string(), "f32 [2]");
/// assert_eq!(handle.to_string(), "DenseHostTensor dtype = f32, shape = [2], values = [1.000000e+00, 2.000000e+00]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct TensorHandle {
    state: State,
    owner: Owner,
    traced: Option<TraceValue>,
}

/// The runtime and the device that a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) runtime: RuntimeId,
    pub(crate) device: DeviceId,
}

/// A value of a recording that a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceValue {
    pub(crate) recording: u32,
    pub(crate) value: u32,
}

/// Identity of a tensor, see [`TensorHandle::identity`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    address: usize,
    /// Type and shape of a view: several views may share memory.
    metadata: Option<TensorMetadata>,
    owner: Owner,
}

#[derive(Clone)]
enum State {
    Tensor(Tensor),
    /// A tensor to come, and the request whose cancellation ends the wait. The request lies in the handle itself, so
    /// that asking many cancelled handles touches no other memory.
    Pending(Arc<PendingTensor>, Arc<RequestContext>),
    Failed(Error),
    /// Moved out by an operation that was given the only handle.
    Taken,
}

/// A pending tensor.
pub(crate) struct PendingTensor {
    tensor: AsyncValue<Tensor>,
    metadata: PendingMetadata,
    outcome: StateAtCancel,
}

/// When the type and shape of a pending tensor become known.
pub(crate) enum PendingMetadata {
    Known(TensorMetadata),
    /// Before the tensor is there, as this value.
    Before(AsyncValue<MetadataValue>),
    /// Together with the tensor.
    WithTensor,
}

/// Type and shape of a tensor, as the value of an [`AsyncValue`].
#[derive(Clone, Debug)]
pub(crate) struct MetadataValue(pub(crate) TensorMetadata);

impl Value for MetadataValue {
    const NAME: &'static str = "!corert.tensor_metadata";
    type Storage = Heap;
}

impl TensorHandle {
    /// Returns a handle to a finished tensor, and freezes the tensor: from now on it is written only by operations
    /// that are given the only handle.
    #[inline]
    pub(crate) fn of_tensor(owner: Owner, mut tensor: Tensor) -> TensorHandle {
        if let Tensor::Dense(dense) = &mut tensor {
            dense.freeze();
        }
        TensorHandle {
            state: State::Tensor(tensor),
            owner,
            traced: None,
        }
    }

    #[inline]
    pub(crate) fn of_error(owner: Owner, error: Error) -> TensorHandle {
        TensorHandle {
            state: State::Failed(error),
            owner,
            traced: None,
        }
    }

    /// Returns a handle to a pending tensor. It fails when the request is cancelled.
    pub(crate) fn of_pending(
        owner: Owner,
        later: PendingTensor,
        request: &Arc<RequestContext>,
    ) -> TensorHandle {
        TensorHandle {
            state: State::Pending(Arc::new(later), request.clone()),
            owner,
            traced: None,
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    pub(crate) fn traced(&self) -> Option<TraceValue> {
        self.traced
    }

    /// Stands for no value of a recording: the handle is another result.
    #[inline(always)]
    pub(crate) fn forget_traced(&mut self) {
        self.traced = None;
    }

    pub(crate) fn set_traced(&mut self, traced: TraceValue) {
        self.traced = Some(traced);
    }

    /// Returns the tensor or the error; `None` while the tensor is pending.
    #[inline]
    pub fn tensor(&self) -> Option<Result<&Tensor, &Error>> {
        match &self.state {
            State::Tensor(tensor) => Some(Ok(tensor)),
            State::Pending(later, request) => later.get(request),
            State::Failed(error) => Some(Err(error)),
            State::Taken => None,
        }
    }

    /// Returns whether the tensor lies in the handle itself.
    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.state, State::Tensor(_))
    }

    /// Returns the tensor in the handle itself.
    #[inline(always)]
    pub(crate) fn as_tensor(&self) -> Option<&Tensor> {
        match &self.state {
            State::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the dense tensor in the handle itself.
    #[inline(always)]
    pub(crate) fn as_dense(&self) -> Option<&DenseHostTensor> {
        match &self.state {
            State::Tensor(Tensor::Dense(dense)) => Some(dense),
            _ => None,
        }
    }

    /// Returns the dense tensor in the handle itself, to be written if nobody else holds its memory.
    #[inline(always)]
    pub(crate) fn as_dense_mut(&mut self) -> Option<&mut DenseHostTensor> {
        match &mut self.state {
            State::Tensor(Tensor::Dense(dense)) => Some(dense),
            _ => None,
        }
    }

    /// Returns whether the tensor is there, or will never be.
    #[inline]
    pub fn is_settled(&self) -> bool {
        match &self.state {
            State::Tensor(_) | State::Failed(_) => true,
            // The request is in the cache.
            State::Pending(later, request) => request.is_cancelled() || later.tensor.is_settled(),
            State::Taken => false,
        }
    }

    /// Returns the error, if it is known that there is no tensor.
    pub fn error(&self) -> Option<&Error> {
        self.tensor()?.err()
    }

    /// Returns type and shape, if they are known.
    #[inline]
    pub fn metadata(&self) -> Option<&TensorMetadata> {
        match &self.state {
            State::Tensor(tensor) => Some(tensor.metadata()),
            State::Pending(later, _) => later.metadata(),
            State::Failed(_) | State::Taken => None,
        }
    }

    /// Returns the type of elements, if it is known.
    pub fn dtype(&self) -> Option<DType> {
        Some(self.metadata()?.dtype)
    }

    /// Returns the extents, if they are known.
    pub fn shape(&self) -> Option<&TensorShape> {
        Some(&self.metadata()?.shape)
    }

    /// Returns the device that the tensor is on, or will be, by its number in the list of the host's devices.
    pub fn device(&self) -> DeviceId {
        self.owner.device
    }

    /// Returns the tensor as a value to wait for. It fails at the latest when the context of the call is cancelled.
    pub fn to_async(&self) -> AsyncValue<Tensor> {
        match &self.state {
            State::Tensor(tensor) => AsyncValue::available(tensor.clone()),
            State::Failed(error) => AsyncValue::from_error(error.clone()),
            State::Pending(later, request) => later.to_async(request),
            State::Taken => AsyncValue::from_error(taken()),
        }
    }

    /// Returns type and shape as a value to wait for.
    pub(crate) fn described(&self) -> AsyncValue<MetadataValue> {
        if let Some(metadata) = self.metadata() {
            return AsyncValue::available(MetadataValue(metadata.clone()));
        }
        match &self.state {
            State::Pending(later, request) => match &later.metadata {
                PendingMetadata::Before(described) => described.clone(),
                _ => later
                    .to_async(request)
                    .map(|tensor| MetadataValue(tensor.metadata().clone())),
            },
            State::Tensor(tensor) => {
                AsyncValue::available(MetadataValue(tensor.metadata().clone()))
            }
            State::Failed(error) => AsyncValue::from_error(error.clone()),
            State::Taken => AsyncValue::from_error(taken()),
        }
    }

    /// Returns the value that settles with the tensor, regardless of cancellation, or `None` if it is settled. For
    /// operations that wait: they look at their own request when they begin.
    #[inline]
    pub(crate) fn awaited(&self) -> Option<&AnyAsyncValue> {
        match &self.state {
            State::Pending(later, request) if later.get(request).is_none() => {
                Some(later.tensor.as_any())
            }
            _ => None,
        }
    }

    /// Returns the value that an operation of `request` has to wait for. A handle of the same request ignores its
    /// cancellation, which the operation looks at when it begins; the end of another request is waited for.
    pub(crate) fn awaited_in(&self, request: &Arc<RequestContext>) -> Option<AnyAsyncValue> {
        let awaited = self.awaited()?;
        match &self.state {
            State::Pending(later, other) if !Arc::ptr_eq(other, request) => {
                Some(later.to_async(other).into_any())
            }
            _ => Some(awaited.clone()),
        }
    }

    /// Returns type and shape as a value that an operation of `request` can wait for; see
    /// [`awaited_in`](Self::awaited_in).
    pub(crate) fn described_in(&self, request: &Arc<RequestContext>) -> AsyncValue<MetadataValue> {
        let described = self.described();
        match &self.state {
            State::Pending(_, other) if !Arc::ptr_eq(other, request) => {
                until_cancelled(&described, other)
            }
            _ => described,
        }
    }

    /// Returns the identity of the tensor, unique as long as a handle to it is held; `None` for tensors that can't be
    /// told apart.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match &self.state {
            State::Tensor(Tensor::Dense(dense)) => Some(Identity {
                address: dense.buffer().address(),
                metadata: Some(dense.metadata().clone()),
                owner: self.owner,
            }),
            State::Pending(later, _) => Some(Identity {
                address: Arc::as_ptr(later).addr(),
                metadata: None,
                owner: self.owner,
            }),
            _ => None,
        }
    }

    /// Returns whether an operation has taken the tensor.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self.state, State::Taken)
    }

    /// Puts a dense tensor back into a handle that it was taken from.
    pub(crate) fn put_back(&mut self, tensor: DenseHostTensor) {
        self.state = State::Tensor(tensor.into());
    }

    /// Takes the dense tensor if this is the only holder of its memory, and leaves an empty handle behind.
    #[inline]
    pub(crate) fn take_sole(&mut self) -> Option<DenseHostTensor> {
        if matches!(self.state, State::Pending(..)) {
            self.settle();
        }
        let is_sole = match &mut self.state {
            State::Tensor(Tensor::Dense(dense)) => dense.is_sole(),
            _ => false,
        };
        if !is_sole {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Tensor(Tensor::Dense(dense)) => Some(dense),
            _ => None,
        }
    }

    /// Takes the tensor of objects, and leaves an empty handle behind.
    pub(crate) fn take_object(&mut self) -> Option<ObjectTensor> {
        if matches!(self.state, State::Pending(..)) {
            self.settle();
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Tensor(Tensor::Object(object)) => Some(object),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Takes the dense tensor that lies in the handle itself, and leaves an empty handle behind.
    #[inline(always)]
    pub(crate) fn take_dense(&mut self) -> Option<DenseHostTensor> {
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Tensor(Tensor::Dense(dense)) => Some(dense),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Moves a settled tensor out of its cell into the handle, if nobody else can see the cell.
    fn settle(&mut self) {
        let State::Pending(later, request) = std::mem::replace(&mut self.state, State::Taken)
        else {
            return;
        };
        self.state = match Arc::try_unwrap(later) {
            Err(shared) => State::Pending(shared, request),
            Ok(later) => match later.get(&request) {
                Some(Ok(_)) => match later.tensor.settled().try_into_value() {
                    Ok(tensor) => State::Tensor(tensor),
                    Err(tensor) => {
                        State::Pending(Arc::new(PendingTensor { tensor, ..later }), request)
                    }
                },
                _ => State::Pending(Arc::new(later), request),
            },
        };
    }

    /// Takes the handle, and leaves an empty one behind.
    #[inline]
    pub(crate) fn take(&mut self) -> TensorHandle {
        let empty = TensorHandle {
            state: State::Taken,
            owner: self.owner,
            traced: self.traced,
        };
        std::mem::replace(self, empty)
    }
}

#[cold]
fn taken() -> Error {
    Error::internal("an operation has taken this tensor")
}

impl PendingTensor {
    /// Returns a pending tensor that resolves with the value, or fails when its request is cancelled.
    pub(crate) fn new(tensor: AsyncValue<Tensor>, metadata: PendingMetadata) -> PendingTensor {
        PendingTensor {
            tensor,
            metadata,
            outcome: StateAtCancel::default(),
        }
    }

    #[inline]
    fn get<'a>(&'a self, request: &'a RequestContext) -> Option<Result<&'a Tensor, &'a Error>> {
        match request.cancellation() {
            None => self.tensor.get(),
            Some(reason) => match self.outcome.is_there(|| self.tensor.is_settled()) {
                true => self.tensor.get(),
                false => Some(Err(reason)),
            },
        }
    }

    fn metadata(&self) -> Option<&TensorMetadata> {
        match &self.metadata {
            PendingMetadata::Known(metadata) => Some(metadata),
            PendingMetadata::Before(described) => match described.get() {
                Some(Ok(described)) => Some(&described.0),
                // Values of inputs may have decided, so that the tensor alone says it.
                _ => self.tensor_metadata(),
            },
            PendingMetadata::WithTensor => self.tensor_metadata(),
        }
    }

    fn tensor_metadata(&self) -> Option<&TensorMetadata> {
        Some(self.tensor.get()?.ok()?.metadata())
    }

    fn to_async(&self, request: &Arc<RequestContext>) -> AsyncValue<Tensor> {
        match self.get(request) {
            Some(Err(error)) => AsyncValue::from_error(error.clone()),
            Some(Ok(_)) => self.tensor.clone(),
            None => until_cancelled(&self.tensor, request),
        }
    }
}

impl Value for TensorHandle {
    const NAME: &'static str = "!corert.tensorhandle";
    type Storage = Heap;
    const RECORD: &'static Record<Self> = {
        static RECORD: Record<TensorHandle> = Record::new();
        &RECORD
    };
}

/// Prints the tensor, or the known part of its type and shape: `f32 [2], to come`.
impl fmt::Display for TensorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tensor(), self.metadata()) {
            (Some(Ok(tensor)), _) => match tensor.to_text() {
                Ok(text) => f.write_str(&text),
                Err(error) => write!(f, "a tensor of {}: {error}", tensor.metadata()),
            },
            (Some(Err(error)), _) => write!(f, "Error TensorHandle: '{error}'"),
            (None, Some(metadata)) => write!(f, "{metadata}, to come"),
            (None, None) => f.write_str("a tensor to come"),
        }
    }
}

impl fmt::Debug for TensorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
