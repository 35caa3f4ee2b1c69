//! [`Context`], [`Stream`], [`Event`] and [`Graph`]: owners of a driver's handles, each of which holds what it stands on.

use std::sync::{Arc, Mutex, PoisonError};

use crate::driver::{
    Argument, DeviceOrdinal, DevicePointer, DeviceProperties, Driver, GpuResult, Grid, RawContext,
    RawEvent, RawFunction, RawModule, RawStream,
};

mod graph;

pub(crate) use graph::Capture;
pub use graph::Graph;

/// A context of a device: the primary one, or one of one's own. Given back with its last owner.
pub struct Context {
    driver: Arc<dyn Driver>,
    device: DeviceOrdinal,
    is_own: bool,
    raw: RawContext,
    properties: DeviceProperties,
    // Events without times that nobody uses.
    idle: Mutex<Vec<RawEvent>>,
}

impl Context {
    /// Retains the primary context of the device of an ordinal.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if there is none; the driver's.
    pub fn primary(driver: Arc<dyn Driver>, ordinal: i32) -> GpuResult<Arc<Context>> {
        Context::of(driver, ordinal, false)
    }

    /// Makes a context of one's own on the device of an ordinal.
    ///
    /// # Errors
    ///
    /// As [`primary`](Self::primary).
    pub fn own(driver: Arc<dyn Driver>, ordinal: i32) -> GpuResult<Arc<Context>> {
        Context::of(driver, ordinal, true)
    }

    fn of(driver: Arc<dyn Driver>, ordinal: i32, is_own: bool) -> GpuResult<Arc<Context>> {
        let device = driver.device(ordinal)?;
        let properties = driver.properties(device)?;
        let raw = match is_own {
            true => driver.create_context(device)?,
            false => driver.retain_primary(device)?,
        };
        let idle = Mutex::default();
        Ok(Arc::new(Context {
            driver,
            device,
            is_own,
            raw,
            properties,
            idle,
        }))
    }

    /// Returns the driver.
    pub fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// Returns the number of the device.
    pub(crate) fn ordinal(&self) -> i32 {
        i32::try_from(self.device.0).unwrap_or(i32::MAX)
    }

    /// Returns what the device is and has.
    pub fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    pub(crate) fn raw(&self) -> RawContext {
        self.raw
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        // What fails here is told by the next call.
        for event in idle.drain(..) {
            let _destroyed = self.driver.destroy_event(self.raw, event);
        }
        let _released = match self.is_own {
            true => self.driver.destroy_context(self.raw),
            false => self.driver.release_primary(self.device),
        };
    }
}

/// A stream: a queue of commands that run in order.
pub struct Stream {
    context: Arc<Context>,
    raw: RawStream,
}

impl Stream {
    /// Makes a stream.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn new(context: Arc<Context>) -> GpuResult<Stream> {
        let raw = context.driver.create_stream(context.raw)?;
        Ok(Stream { context, raw })
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Records an event: it is reached when what the stream was given so far is done.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn record(&self) -> GpuResult<Event> {
        let idle = self
            .context
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let raw = match idle {
            Some(raw) => raw,
            None => self.context.driver.create_event(self.context.raw, false)?,
        };
        let event = Event {
            context: self.context.clone(),
            raw,
        };
        self.context
            .driver
            .record_event(self.context.raw, raw, self.raw)?;
        Ok(event)
    }

    /// Lets what the stream is given from now on wait for an event.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn wait(&self, event: &Event) -> GpuResult<()> {
        self.context
            .driver
            .wait_event(self.context.raw, self.raw, event.raw)
    }

    /// Waits until all that the stream was given is done.
    ///
    /// # Errors
    ///
    /// The driver's; that of a lost context.
    pub fn synchronize(&self) -> GpuResult<()> {
        self.context
            .driver
            .synchronize_stream(self.context.raw, self.raw)
    }

    pub(crate) fn raw(&self) -> RawStream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _destroyed = self
            .context
            .driver
            .destroy_stream(self.context.raw, self.raw);
    }
}

/// An event that is recorded over and over.
pub(crate) struct Mark {
    context: Arc<Context>,
    raw: RawEvent,
}

impl Mark {
    pub(crate) fn new(context: Arc<Context>) -> GpuResult<Mark> {
        let raw = context.driver.create_event(context.raw, false)?;
        Ok(Mark { context, raw })
    }

    /// Queues a record behind what a stream was given.
    pub(crate) fn record(&self, stream: &Stream) -> GpuResult<()> {
        let context = stream.context();
        context
            .driver
            .record_event(context.raw, self.raw, stream.raw)
    }

    /// Lets what a stream is given from now on wait for the last record.
    pub(crate) fn hold(&self, stream: &Stream) -> GpuResult<()> {
        let context = stream.context();
        context.driver.wait_event(context.raw, stream.raw, self.raw)
    }

    pub(crate) fn synchronize(&self) -> GpuResult<()> {
        self.context
            .driver
            .synchronize_event(self.context.raw, self.raw)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _destroyed = self
            .context
            .driver
            .destroy_event(self.context.raw, self.raw);
    }
}

/// A record of a place in a stream. Dropped, it is used for another record.
pub struct Event {
    context: Arc<Context>,
    raw: RawEvent,
}

impl Event {
    /// Returns whether the stream has passed the record.
    ///
    /// # Errors
    ///
    /// The driver's; that of a lost context.
    pub fn is_reached(&self) -> GpuResult<bool> {
        self.context.driver.query_event(self.context.raw, self.raw)
    }
}

impl Event {
    /// Waits until the stream has passed the record.
    pub(crate) fn synchronize(&self) -> GpuResult<()> {
        self.context
            .driver
            .synchronize_event(self.context.raw, self.raw)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.context
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.raw);
    }
}

/// A loaded module.
pub(crate) struct Module {
    context: Arc<Context>,
    raw: RawModule,
}

impl Module {
    pub(crate) fn load(context: Arc<Context>, image: &[u8]) -> GpuResult<Module> {
        let raw = context.driver.load_module(context.raw, image)?;
        Ok(Module { context, raw })
    }

    pub(crate) fn function(&self, name: &str) -> GpuResult<RawFunction> {
        self.context
            .driver
            .function(self.context.raw, self.raw, name)
    }
}

impl Module {
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn global(&self, name: &str) -> GpuResult<(DevicePointer, usize)> {
        self.context.driver.global(self.context.raw, self.raw, name)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _unloaded = self
            .context
            .driver
            .unload_module(self.context.raw, self.raw);
    }
}

impl Stream {
    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// The arguments fit the kernel, and the kernel writes only into their memory: see [`Driver::launch`].
    #[expect(unsafe_code, reason = "passes on what its caller answers for")]
    pub(crate) unsafe fn launch(
        &self,
        function: RawFunction,
        grid: &Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        // SAFETY: the caller's.
        unsafe {
            self.context
                .driver
                .launch(self.context.raw, self.raw, function, grid, arguments)
        }
    }
}
