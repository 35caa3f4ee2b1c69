//! [`Context`], [`Stream`], [`Event`] and [`Function`]: what programs hold of a device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tfrt_host::{Chain, Error};

use super::buffers::{Buffer, Registered};
use crate::context::{self, Mark, Module};
use crate::driver::{DevicePointer, Driver, FunctionInfo, GpuResult, RawFunction};
use crate::memory::Allocator;

/// A device by its number.
#[derive(Clone)]
pub(super) struct Device {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) ordinal: i32,
}

impl Device {
    /// Returns the device of a number.
    pub(super) fn get(driver: Arc<dyn Driver>, ordinal: i32) -> Result<Device, Error> {
        driver.device(ordinal)?;
        Ok(Device { driver, ordinal })
    }

    pub(super) fn primary(&self) -> Result<Context, Error> {
        let context = context::Context::primary(self.driver.clone(), self.ordinal)?;
        Ok(Context::new(context))
    }

    pub(super) fn own(&self) -> Result<Context, Error> {
        let context = context::Context::own(self.driver.clone(), self.ordinal)?;
        Ok(Context::new(context))
    }
}

/// A context, and what of the host is lent to it.
#[derive(Clone)]
pub(super) struct Context(Arc<Parts>);

struct Parts {
    context: Arc<context::Context>,
    in_flight: Mutex<Vec<(context::Event, InUse)>>,
}

/// A thing that commands use which may not be over.
enum InUse {
    /// Memory of the host that is lent.
    Lent(Arc<Registered>),
    /// A module that nobody holds any more.
    Left { _module: Arc<Module> },
}

impl InUse {
    /// Gives back what is used no longer.
    fn end(&self) -> GpuResult<()> {
        match self {
            InUse::Lent(registered) => registered.used(),
            InUse::Left { .. } => Ok(()),
        }
    }
}

impl Context {
    fn new(context: Arc<context::Context>) -> Context {
        Context(Arc::new(Parts {
            context,
            in_flight: Mutex::default(),
        }))
    }

    pub(super) fn inner(&self) -> &Arc<context::Context> {
        &self.0.context
    }

    pub(super) fn driver(&self) -> &dyn Driver {
        self.0.context.driver()
    }

    pub(super) fn ordinal(&self) -> i32 {
        self.0.context.ordinal()
    }

    /// Checks that something belongs to this context.
    pub(super) fn expect(&self, what: &str, other: &context::Context) -> Result<(), Error> {
        if self.0.context.raw() == other.raw() {
            return Ok(());
        }
        let message = format!("expected {what} of the stream's context, found one of another");
        Err(Error::invalid_argument(message))
    }

    pub(super) fn stream(&self) -> Result<Stream, Error> {
        let stream = Arc::new(context::Stream::new(self.0.context.clone())?);
        Ok(Stream {
            context: self.clone(),
            stream,
        })
    }

    pub(super) fn event(&self) -> Result<Event, Error> {
        let mark = Arc::new(Mark::new(self.0.context.clone())?);
        Ok(Event {
            context: self.clone(),
            mark,
        })
    }

    pub(super) fn allocator(&self) -> MemoryOf {
        MemoryOf {
            context: self.clone(),
            allocator: Arc::default(),
        }
    }

    /// Loads a module.
    pub(super) fn load(&self, image: &[u8]) -> Result<Arc<Loaded>, Error> {
        let module = Module::load(self.0.context.clone(), image)?;
        Ok(Arc::new(Loaded {
            module: Arc::new(module),
            parts: Arc::downgrade(&self.0),
            users: Mutex::default(),
        }))
    }

    /// Gives the host back what of it no command uses any more.
    pub(super) fn retire(&self) -> GpuResult<()> {
        let mut in_flight = self.0.lock();
        let mut first = Ok(());
        in_flight.retain(|(event, used)| match event.is_reached() {
            Ok(false) => true,
            reached => {
                let taken = used.end();
                if first.is_ok() {
                    first = reached.map(drop).and(taken);
                }
                false
            }
        });
        first
    }
}

impl Parts {
    fn lock(&self) -> MutexGuard<'_, Vec<(context::Event, InUse)>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let all = std::mem::take(&mut *self.lock());
        if all.is_empty() {
            return;
        }
        // What fails here is told by the next call.
        let _waited = self
            .context
            .driver()
            .synchronize_context(self.context.raw());
        for (_, used) in all {
            let _taken = used.end();
        }
    }
}

/// An allocator of a context's memory.
#[derive(Clone)]
pub(super) struct MemoryOf {
    pub(super) context: Context,
    pub(super) allocator: Arc<Allocator>,
}

/// A stream of a context.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) context: Context,
    pub(super) stream: Arc<context::Stream>,
}

impl Stream {
    /// Queues what uses buffers: gives their addresses to `queue`.
    pub(super) fn queue<R>(
        &self,
        buffers: &[&Buffer],
        queue: impl FnOnce(&[DevicePointer]) -> GpuResult<R>,
    ) -> Result<R, Error> {
        let pointers = self.pointers(buffers)?;
        let queued = queue(&pointers);
        let used = self.used(buffers);
        let queued = queued?;
        used?;
        Ok(queued)
    }

    /// Returns addresses of buffers for commands of this stream, which [`used`](Self::used) follows.
    pub(super) fn pointers(&self, buffers: &[&Buffer]) -> Result<Vec<DevicePointer>, Error> {
        let mut pointers = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            self.context.expect("a buffer", buffer.context())?;
            pointers.push(buffer.pointer()?);
        }
        Ok(pointers)
    }

    /// Remembers that commands of this stream use buffers.
    pub(super) fn used(&self, buffers: &[&Buffer]) -> Result<(), Error> {
        for buffer in buffers {
            buffer.used_by(&self.stream);
            if let Some(registered) = buffer.registered() {
                let event = self.stream.record()?;
                registered.begin();
                let used = InUse::Lent(registered.clone());
                self.context.0.lock().push((event, used));
            }
        }
        Ok(())
    }

    /// Waits until all commands are done.
    pub(super) fn synchronize(&self) -> Result<Chain, Error> {
        self.stream.synchronize()?;
        self.context.retire()?;
        Ok(Chain)
    }

    /// Lets what the stream is given from now on wait for an event.
    pub(super) fn wait(&self, event: &Event) -> Result<Chain, Error> {
        self.context.expect("an event", event.context.inner())?;
        event.mark.hold(&self.stream)?;
        Ok(Chain)
    }
}

/// An event of a context.
#[derive(Clone)]
pub(super) struct Event {
    context: Context,
    mark: Arc<Mark>,
}

impl Event {
    pub(super) fn record(&self, stream: &Stream) -> Result<Chain, Error> {
        stream.context.expect("an event", self.context.inner())?;
        self.mark.record(&stream.stream)?;
        Ok(Chain)
    }

    /// Waits until the stream has passed the last record.
    pub(super) fn synchronize(&self) -> Result<Chain, Error> {
        self.mark.synchronize()?;
        self.context.retire()?;
        Ok(Chain)
    }
}

/// A module. Dropped, it is unloaded behind the launches of its kernels.
pub(super) struct Loaded {
    module: Arc<Module>,
    parts: Weak<Parts>,
    // Streams with launches of its kernels.
    users: Mutex<Vec<Arc<context::Stream>>>,
}

impl Loaded {
    pub(super) fn context(&self) -> &Arc<context::Context> {
        self.module.context()
    }

    pub(super) fn global(&self, name: &str) -> GpuResult<(DevicePointer, usize)> {
        self.module.global(name)
    }

    /// Remembers that commands of a stream use it.
    pub(super) fn used_by(&self, stream: &Arc<context::Stream>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if !users.iter().any(|user| Arc::ptr_eq(user, stream)) {
            users.push(stream.clone());
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let users = std::mem::take(&mut *self.users.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(parts) = self.parts.upgrade() else {
            for user in users {
                // What fails here is told by the next call.
                let _waited = user.synchronize();
            }
            return;
        };
        for user in users {
            if let Ok(event) = user.record() {
                let _module = self.module.clone();
                parts.lock().push((event, InUse::Left { _module }));
            }
        }
    }
}

/// A kernel of a module, which it keeps.
#[derive(Clone)]
pub(super) struct Function {
    pub(super) module: Arc<Loaded>,
    pub(super) name: Arc<str>,
    pub(super) raw: RawFunction,
    pub(super) info: Arc<FunctionInfo>,
}

impl Function {
    pub(super) fn of(module: &Arc<Loaded>, name: &str) -> Result<Function, Error> {
        // In compiled programs names may end in a zero.
        let name = name.trim_end_matches('\0');
        let raw = module.module.function(name)?;
        let context = module.context();
        let info = context.driver().function_info(context.raw(), raw)?;
        Ok(Function {
            module: module.clone(),
            name: name.into(),
            raw,
            info: Arc::new(info),
        })
    }
}
