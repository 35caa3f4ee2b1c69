//! [`CoreRuntime`]: the way in: handlers by name, operations, tensors.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tfrt_host::{AsyncValue, DeviceId, DeviceKind, DeviceRef, Error, HostContext, RequestContext};
use tfrt_tensor::op::OpKernel;
use tfrt_tensor::resource::Resources;
use tfrt_tensor::{DenseHostTensor, Element, Tensor, device_of};

use crate::TensorHandle;
use crate::added::{AddedOps, AddedSources};
use crate::context::Context;
use crate::definition::OpRegistry;
use crate::effects::ResourceOrder;
use crate::handle::{Owner, PendingMetadata, PendingTensor};
use crate::handler::{CpuOpHandler, OpHandler};
use crate::op::CoreRuntimeOp;
use crate::rows::{DeviceOpHandler, FindKernel, RowOpHandler};

/// Number that tells runtimes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RuntimeId(u32);

/// Executes operations on the tensors of a host. A counted handle: all of a host lead to one runtime.
///
/// # Examples
///
/// ```
/// use tfrt_corert::{CoreRuntime, OpAttrs};
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
/// let relu = runtime.op("tf.Relu", &runtime.cpu())?;
/// let x = runtime.dense(&[2], &[-1.0_f32, 2.0])?;
/// let y = relu.call_one(&runtime.context(), [x], &OpAttrs::new())?;
/// assert_eq!(y.metadata().unwrap().to_string(), "f32 [2]");
///
/// let error = runtime.op("tf.Rely", &runtime.cpu()).unwrap_err();
/// assert_eq!(error.message(), "op 'tf.Rely' is not supported");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct CoreRuntime {
    host: HostContext,
    shared: Arc<Shared>,
}

/// State shared by all runtimes of a host. It does not hold the host, which holds it.
struct Shared {
    id: RuntimeId,
    handlers: RwLock<BTreeMap<String, Arc<dyn OpHandler>>>,
    cpu: OnceLock<Arc<dyn OpHandler>>,
    /// Finds what runs rows.
    kernels: OnceLock<FindKernel>,
    /// Kernels of rows on devices beside the host.
    device_kernels: OnceLock<Arc<[OpKernel]>>,
    /// Operations of libraries.
    added: AddedSources,
    /// Handlers of devices that were asked for.
    devices: RwLock<BTreeMap<DeviceId, Arc<dyn OpHandler>>>,
    /// The order of calls on resources.
    order: ResourceOrder,
}

/// The next number of a runtime: a statistic, which tells them apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl CoreRuntime {
    /// Returns the runtime of a host.
    pub fn new(host: &HostContext) -> CoreRuntime {
        let shared = host.shared(|_| Shared {
            // Ordering: a statistic.
            id: RuntimeId(NEXT.fetch_add(1, Ordering::Relaxed)),
            handlers: RwLock::default(),
            cpu: OnceLock::new(),
            kernels: OnceLock::new(),
            device_kernels: OnceLock::new(),
            added: AddedSources::default(),
            devices: RwLock::default(),
            order: ResourceOrder::default(),
        });
        CoreRuntime {
            host: host.clone(),
            shared,
        }
    }

    /// Returns the resources of the host: variables by name.
    pub fn resources(&self) -> Arc<Resources> {
        Resources::of(&self.host)
    }

    pub(crate) fn order(&self) -> &ResourceOrder {
        &self.shared.order
    }

    pub(crate) fn id(&self) -> RuntimeId {
        self.shared.id
    }

    /// Returns the host.
    pub fn host(&self) -> &HostContext {
        &self.host
    }

    /// Returns the host's own device.
    pub fn device(&self) -> DeviceRef {
        let device = self.host.devices().by_id(DeviceId::HOST);
        device.expect("every host has it")
    }

    /// Returns the device that a tensor is on, or will be.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a handle of another runtime.
    pub fn device_of(&self, handle: &TensorHandle) -> Result<DeviceRef, Error> {
        let owner = handle.owner();
        let device = match owner.runtime == self.id() {
            true => self.host.devices().by_id(owner.device),
            false => None,
        };
        device.ok_or_else(|| {
            Error::invalid_argument("expected a tensor of this runtime, found one of another")
        })
    }

    /// Returns a new context for calls.
    pub fn context(&self) -> Context {
        Context::new(self.clone(), RequestContext::new(&self.host))
    }

    /// Returns a new context for calls that belong to a request.
    pub fn context_of(&self, request: &Arc<RequestContext>) -> Context {
        Context::new(self.clone(), request.clone())
    }

    /// Says what runs operations. Told once, before the first operation is looked for; later calls change nothing.
    /// Without it there are functions of single elements alone.
    pub fn set_kernels(&self, find: FindKernel) {
        let _ = self.shared.kernels.set(find);
    }

    /// Adds operations of a library, which handlers of rows find from now on. Operations that were found before stay as they
    /// are.
    pub fn add_ops(&self, ops: Arc<dyn AddedOps>) {
        self.shared.added.add(ops);
    }

    /// Returns the handler of all operations that are rows ([`RowOpHandler`]), on the host's device.
    pub fn cpu(&self) -> Arc<dyn OpHandler> {
        let make = || self.rows(DeviceId::HOST, None);
        self.shared.cpu.get_or_init(make).clone()
    }

    /// Returns a handler of all operations that are rows, on a device in the memory of the host; what is no row `next` is
    /// asked for.
    pub fn rows(&self, device: DeviceId, next: Option<Arc<dyn OpHandler>>) -> Arc<dyn OpHandler> {
        let find = self.shared.kernels.get().copied().unwrap_or(|_| None);
        let handler = RowOpHandler::new(find, device, next);
        Arc::new(handler.with_added(self.shared.added.clone()))
    }

    /// Sets the kernels of devices beside the host. Called once, before a handler of such a device is asked for;
    /// later calls change nothing.
    pub fn set_device_kernels(&self, kernels: Arc<[OpKernel]>) {
        let _ = self.shared.device_kernels.set(kernels);
    }

    /// Returns the handler of the operations that a device has kernels for ([`DeviceOpHandler`]): operands on the host are
    /// copied to it, results are there. Of a device in the memory of the host it is that of all rows.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a device of another host.
    pub fn on(&self, device: &DeviceRef) -> Result<Arc<dyn OpHandler>, Error> {
        let memory = self.host.devices().contract(device)?.memory();
        if device.id() == DeviceId::HOST {
            return Ok(self.cpu());
        }
        let devices = &self.shared.devices;
        let mut devices = devices.write().unwrap_or_else(PoisonError::into_inner);
        let make = || match memory.is_host() {
            true => self.rows(device.id(), None),
            false => self.device_handler(device, None),
        };
        Ok(devices.entry(device.id()).or_insert_with(make).clone())
    }

    /// Returns a handler of the operations that a device beside the host has kernels for; what it has none of `next` is
    /// asked for, whose operations are given their operands on its own device. Its name is the device's: who records calls
    /// [registers](Self::register) it under that.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a device of another host.
    pub fn on_or(
        &self,
        device: &DeviceRef,
        next: Arc<dyn OpHandler>,
    ) -> Result<Arc<dyn OpHandler>, Error> {
        self.host.devices().contract(device)?;
        Ok(self.device_handler(device, Some(next)))
    }

    fn device_handler(
        &self,
        device: &DeviceRef,
        next: Option<Arc<dyn OpHandler>>,
    ) -> Arc<dyn OpHandler> {
        let kernels = self.shared.device_kernels.get().cloned();
        let kernels = kernels.unwrap_or_default();
        Arc::new(DeviceOpHandler::new(device.clone(), kernels, next))
    }

    /// Returns a handler of operations of one's own, on the host's device; what it does not know `next` is asked for.
    /// Recordings of its calls ask for a handler of this name: [`register`](Self::register) it under that.
    pub fn handler_of(
        &self,
        name: &str,
        registry: OpRegistry,
        next: Option<Arc<dyn OpHandler>>,
    ) -> Arc<dyn OpHandler> {
        Arc::new(CpuOpHandler::new(
            name,
            Arc::new(registry),
            DeviceId::HOST,
            next,
        ))
    }

    /// Registers a handler under a name by which programs find it.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if another handler has the name.
    pub fn register(&self, name: &str, handler: Arc<dyn OpHandler>) -> Result<(), Error> {
        let mut handlers = self
            .shared
            .handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(present) = handlers.get(name) {
            if Arc::ptr_eq(present, &handler) {
                return Ok(());
            }
            let name = name.escape_debug();
            return Err(Error::already_exists(format!(
                "an op handler is called '{name}' already"
            )));
        }
        handlers.insert(name.to_owned(), handler);
        Ok(())
    }

    /// Returns the handler of this name. Unless another has the name, `cpu` is [`cpu`](Self::cpu), and that of a
    /// device [`on`](Self::on).
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none.
    pub fn handler(&self, name: &str) -> Result<Arc<dyn OpHandler>, Error> {
        let handlers = self
            .shared
            .handlers
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(handler) = handlers.get(name) {
            return Ok(handler.clone());
        }
        if name == DeviceKind::CPU.name() {
            drop(handlers);
            return Ok(self.cpu());
        }
        if let Some(device) = self.host.devices().get(name) {
            drop(handlers);
            return self.on(&device);
        }
        let name = name.escape_debug();
        let known: Vec<&str> = handlers.keys().map(String::as_str).collect();
        let error = Error::not_found(format!("op_handler not found: {name}"));
        Err(match known.is_empty() {
            true => error,
            false => error.with_note(format!("there are {}", known.join(", "))),
        })
    }

    /// Finds an operation, to be called often.
    ///
    /// # Errors
    ///
    /// `NotFound` if the handler does not know it.
    pub fn op(&self, name: &str, handler: &Arc<dyn OpHandler>) -> Result<CoreRuntimeOp, Error> {
        let op = handler.find(name)?;
        Ok(CoreRuntimeOp::new(op, Some(handler.clone()), self.id()))
    }

    /// Returns a handle to a tensor, on the device that it is on.
    pub fn handle(&self, tensor: impl Into<Tensor>) -> TensorHandle {
        let tensor = tensor.into();
        let owner = Owner {
            device: device_of(&tensor),
            ..self.owner()
        };
        TensorHandle::of_tensor(owner, tensor)
    }

    /// Returns a handle to a pending tensor on a device. It fails when the request is cancelled.
    pub fn pending(
        &self,
        device: &DeviceRef,
        tensor: AsyncValue<Tensor>,
        request: &Arc<RequestContext>,
    ) -> TensorHandle {
        let owner = Owner {
            device: device.id(),
            ..self.owner()
        };
        let pending = PendingTensor::new(tensor, PendingMetadata::WithTensor);
        TensorHandle::of_pending(owner, pending, request)
    }

    /// Returns a handle without a tensor.
    pub fn failed(&self, error: Error) -> TensorHandle {
        TensorHandle::of_error(self.owner(), error)
    }

    /// Returns a handle to a dense tensor of these elements.
    ///
    /// # Errors
    ///
    /// Those of [`DenseHostTensor::from_slice`].
    pub fn dense<T: Element>(
        &self,
        extents: &[usize],
        elements: &[T],
    ) -> Result<TensorHandle, Error> {
        Ok(self.handle(DenseHostTensor::from_slice(
            self.host.allocator(),
            extents,
            elements,
        )?))
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner {
            runtime: self.id(),
            device: DeviceId::HOST,
        }
    }
}

impl fmt::Debug for CoreRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreRuntime")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
