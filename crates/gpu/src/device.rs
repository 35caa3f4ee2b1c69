//! [`GpuDevice`]: a GPU as a device of the runtime, with a stream of its own.
//!
//! A tensor on it is ready when the work that makes it is queued: what reads it runs behind that, in the order of the
//! stream. Copies from and to the host go through pinned memory: those to the GPU are over for the host when they are
//! queued, and for those from it one thread waits, which settles their chains. A block is given back to the stream when its last handle is dropped, also while the GPU works.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tfrt_host::device::{
    Device, DeviceBuffer, DeviceMemory, DeviceSlice, DeviceThread, MemoryKind, Source, Target,
    TensorText,
};
use tfrt_host::memory::{HostBuffer, OwnedWriting};
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Chain, DeviceId, DeviceKind, Error, HostAllocator, Promise,
    RequestContext, when_all,
};

use crate::context::{Context, Event, Stream};
use crate::driver::{DevicePointer, Driver, GpuResult, RawPinned, Transfer};
use crate::kernels::Kernels;
use crate::memory::{Allocator, Block};

/// The kind of such devices.
pub const KIND: DeviceKind = DeviceKind::new("cuda");

/// Copies of more bytes wait on the device's thread instead of going through pinned memory.
const MOST_PINNED: usize = 32 << 20;

/// How long completion is asked for without a pause.
const SPIN: Duration = Duration::from_micros(50);

/// A GPU.
pub struct GpuDevice(Arc<Shared>);

/// State shared by all work on a device.
pub(crate) struct Common {
    // Told when the device is added to a host.
    id: OnceLock<DeviceId>,
    name: String,
    thread: DeviceThread,
    pinned: Mutex<Vec<Pinned>>,
    host_allocator: Arc<dyn HostAllocator>,
    pub(crate) kernels: Kernels,
}

/// A stream of a device, and the memory that its work takes: the device's own, or that of a capture.
pub(crate) struct Shared {
    // Before the stream, since jobs of its thread use that.
    pub(crate) common: Arc<Common>,
    allocator: Arc<Allocator>,
    pub(crate) stream: Arc<Stream>,
}

/// The stream and the memory that a request's work on a device takes in place of the device's own.
pub(crate) struct Lane(pub(crate) Arc<Shared>);

/// A pinned buffer of the host.
struct Pinned {
    context: Arc<Context>,
    raw: RawPinned,
    buffer: HostBuffer,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _unpinned = self
            .context
            .driver()
            .unregister(self.context.raw(), self.raw);
    }
}

/// Memory of a GPU.
pub struct GpuMemory {
    block: Block,
    len_bytes: usize,
    shared: Arc<Shared>,
}

impl GpuDevice {
    /// Makes the device of a driver's ordinal: `GPU:0` is that of the first.
    ///
    /// # Errors
    ///
    /// `Unavailable` or `InvalidArgument` if there is none; `ResourceExhausted` if there is no thread for it.
    pub fn new(
        driver: Arc<dyn Driver>,
        ordinal: i32,
        host_allocator: Arc<dyn HostAllocator>,
    ) -> Result<GpuDevice, Error> {
        GpuDevice::limited(driver, ordinal, host_allocator, None)
    }

    /// Makes the device of a driver's ordinal, which takes so many bytes of its memory at most.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn limited(
        driver: Arc<dyn Driver>,
        ordinal: i32,
        host_allocator: Arc<dyn HostAllocator>,
        max_memory: Option<usize>,
    ) -> Result<GpuDevice, Error> {
        let name = format!("GPU:{ordinal}");
        let context = Context::primary(driver, ordinal)?;
        let stream = Arc::new(Stream::new(context.clone())?);
        let common = Common {
            id: OnceLock::new(),
            thread: DeviceThread::spawn(&name)?,
            name,
            pinned: Mutex::default(),
            host_allocator,
            kernels: Kernels::new(context),
        };
        Ok(GpuDevice(Arc::new(Shared {
            common: Arc::new(common),
            allocator: Arc::new(Allocator::limited(max_memory)),
            stream,
        })))
    }

    /// Says the device's number in the list of its host, once.
    pub fn number(&self, id: DeviceId) {
        let _was_told = self.0.common.id.set(id);
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        self.0.stream.context()
    }

    /// Returns how many bytes of the device are held, and how many are kept for reuse.
    pub fn held_and_kept(&self) -> (usize, usize) {
        self.0.allocator.held_and_kept()
    }
}

impl Device for GpuDevice {
    fn kind(&self) -> DeviceKind {
        KIND
    }

    fn name(&self) -> &str {
        &self.0.common.name
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Device
    }

    fn allocate(
        &self,
        request: &RequestContext,
        n: usize,
        _: usize,
    ) -> Result<DeviceMemory, Error> {
        let lane = request.data::<Lane>();
        let own = lane.filter(|lane| Arc::ptr_eq(&lane.0.common, &self.0.common));
        let memory = own.as_ref().map_or(&self.0, |lane| &lane.0).allocate(n);
        memory.map(|memory| -> DeviceMemory { memory })
    }

    fn copy(&self, from: Source, to: Target, after: &[AnyAsyncValue]) -> AsyncValue<Chain> {
        let (done, chain) = AsyncValue::pending();
        let shared = self.0.clone();
        when_all(after).when_settled(move |all| match all.error() {
            Some(error) => {
                drop((from, to));
                done.complete(Err(error.clone()));
            }
            None => shared.copy(from, to, done),
        });
        chain
    }

    fn tensor_format(&self) -> &'static str {
        "DenseGpu"
    }

    fn trim(&self) {
        // What fails here is told by the next call.
        let _trimmed = self.0.allocator.trim(&self.0.stream);
    }
}

impl Shared {
    /// Makes a stream and memory for a capture. What it takes counts as taken by the device.
    pub(crate) fn lane(&self) -> Result<Arc<Shared>, Error> {
        Ok(Arc::new(Shared {
            common: self.common.clone(),
            allocator: Arc::new(Allocator::within(&self.allocator)),
            stream: Arc::new(Stream::new(self.stream.context().clone())?),
        }))
    }

    /// Ends the taking and giving back of memory of a capture, which is over.
    pub(crate) fn seal(&self) {
        self.allocator.seal();
    }

    /// Queues a copy within the device.
    pub(crate) fn copy_within(&self, from: &DeviceSlice, to: &DeviceSlice) -> Result<(), Error> {
        let transfer = Transfer::Within {
            from: pointer(from)?,
            to: pointer(to)?,
            len_bytes: from.len_bytes(),
        };
        let context = self.stream.context();
        let driver = context.driver();
        Ok(driver.copy(context.raw(), self.stream.raw(), transfer)?)
    }

    pub(crate) fn allocate(self: &Arc<Self>, len_bytes: usize) -> Result<Arc<GpuMemory>, Error> {
        let block = self
            .allocator
            .take(&self.stream, len_bytes)
            .map_err(|error| {
                let limit = match self.allocator.most_bytes() {
                    Some(most) => {
                        let (held, _) = self.allocator.held_and_kept();
                        format!(": {held} of the {most} that it is limited to are in use")
                    }
                    None => String::new(),
                };
                let what = format!(
                    "there are no {len_bytes} bytes on {}{limit}",
                    self.common.name
                );
                match error.kind {
                    crate::GpuErrorKind::Exhausted => Error::resource_exhausted(what),
                    _ => error.into(),
                }
            })?;
        Ok(Arc::new(GpuMemory {
            block,
            len_bytes,
            shared: self.clone(),
        }))
    }

    /// Queues a copy. One that reads nothing of the host any more is over for the host when it is queued: what follows
    /// runs behind it. The end of others is told later.
    fn copy(self: Arc<Self>, from: Source, to: Target, done: Promise<Chain>) {
        // Rights are given back before the promise is settled, also by who fails.
        let mut copying = match self.queue_copy(from, to) {
            Ok(copying) => copying,
            Err(error) => return done.complete(Err(error)),
        };
        let shared = self.clone();
        if !copying.is_ordered {
            return self
                .common
                .thread
                .enqueue(&[], done, move || copying.finish(&shared));
        }
        copying.held = None;
        done.complete(Ok(Chain));
        if copying.pinned.is_some() {
            // Nobody waits for the pinned buffer. That the context is lost is told by the next call.
            let (given_back, _) = AsyncValue::pending();
            let thread = &self.common.thread;
            thread.enqueue(&[], given_back, move || copying.finish(&shared));
        }
    }

    fn queue_copy(&self, from: Source, to: Target) -> Result<Copying, Error> {
        from.expect_len_of(&to)?;
        let len_bytes = from.len_bytes();
        let mut copying = Copying {
            event: None,
            late: None,
            held: None,
            pinned: None,
            target: None,
            is_ordered: false,
        };
        match (from, to) {
            (from, to) if len_bytes == 0 => drop((from, to)),
            (Source::Host(from), Target::Device(to)) if len_bytes > MOST_PINNED => {
                let transfer = Transfer::Up {
                    from,
                    to: pointer(&to)?,
                };
                copying.late = Some(transfer);
                copying.held = Some((None, to));
            }
            (Source::Device(from), Target::Host(to)) if len_bytes > MOST_PINNED => {
                let transfer = Transfer::Down {
                    from: pointer(&from)?,
                    to,
                };
                copying.late = Some(transfer);
                copying.held = Some((None, from));
            }
            (Source::Host(from), Target::Device(to)) => {
                let at = pointer(&to)?;
                let pinned = self.pinned(len_bytes)?;
                let part = pinned.part(len_bytes);
                part.write()?.copy_from_slice(&from);
                copying.event = Some(self.queue(Transfer::Up {
                    from: part.read_owned()?,
                    to: at,
                })?);
                copying.pinned = Some(pinned);
                copying.held = Some((Some(Source::Host(from)), to));
                copying.is_ordered = true;
            }
            (Source::Device(from), Target::Host(to)) => {
                let at = pointer(&from)?;
                let pinned = self.pinned(len_bytes)?;
                let part = pinned.part(len_bytes);
                copying.event = Some(self.queue(Transfer::Down {
                    from: at,
                    to: part.write_owned()?,
                })?);
                copying.pinned = Some(pinned);
                copying.target = Some(to);
                copying.held = Some((None, from));
            }
            (Source::Device(from), Target::Device(to)) => {
                self.copy_within(&from, &to)?;
                copying.held = Some((Some(Source::Device(from)), to));
                copying.is_ordered = true;
            }
            (Source::Host(_), Target::Host(_)) => {
                let message = format!("{} copies from or to its own memory", self.common.name);
                return Err(Error::invalid_argument(message));
            }
        }
        Ok(copying)
    }

    /// Returns a chain that is there when the device has done what was queued so far.
    pub(crate) fn finished(&self) -> AsyncValue<Chain> {
        let (done, chain) = AsyncValue::pending();
        match self.stream.record() {
            Ok(event) => {
                let wait = move || Ok(wait(&event)?);
                self.common.thread.enqueue(&[], done, wait);
            }
            Err(error) => done.complete(Err(error.into())),
        }
        chain
    }

    fn queue(&self, transfer: Transfer) -> GpuResult<Event> {
        let context = self.stream.context();
        let queued = context
            .driver()
            .copy(context.raw(), self.stream.raw(), transfer);
        let event = queued.and_then(|()| self.stream.record());
        // If only the record has failed, the copy is on its way in memory that is given back now.
        event.inspect_err(|_| drop(self.stream.synchronize()))
    }

    /// Returns a pinned buffer of so many bytes at least.
    fn pinned(&self, len_bytes: usize) -> Result<Pinned, Error> {
        let size = len_bytes.next_power_of_two().max(4096);
        let mut idle = self
            .common
            .pinned
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = idle
            .iter()
            .position(|pinned| pinned.buffer.len_bytes() == size)
        {
            return Ok(idle.swap_remove(at));
        }
        drop(idle);
        let buffer =
            HostBuffer::zeroed(&self.common.host_allocator, size, 4096).ok_or_else(|| {
                Error::resource_exhausted(format!(
                    "there are no {size} bytes to pin for {}",
                    self.common.name
                ))
            })?;
        let context = self.stream.context().clone();
        let raw = context.driver().register(context.raw(), buffer.clone())?;
        Ok(Pinned {
            context,
            raw,
            buffer,
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _done = self.stream.synchronize();
        self.allocator.close(&self.stream);
    }
}

impl Pinned {
    fn part(&self, len_bytes: usize) -> HostBuffer {
        let part = self.buffer.slice(0..len_bytes);
        part.expect("the buffer has as many bytes")
    }
}

/// A copy under way, and what it holds.
struct Copying {
    event: Option<Event>,
    // A large copy, which begins when the device's thread comes to it.
    late: Option<Transfer>,
    target: Option<OwnedWriting>,
    held: Option<(Option<Source>, DeviceSlice)>,
    pinned: Option<Pinned>,
    // Whether nobody has to wait for its end.
    is_ordered: bool,
}

impl Copying {
    /// Waits until the copy is over, and brings bytes from pinned memory to where they belong.
    fn finish(mut self, shared: &Shared) -> Result<(), Error> {
        if let Some(transfer) = self.late.take() {
            self.event = Some(shared.queue(transfer)?);
        }
        if let Some(event) = self.event.take() {
            // If only the question has failed, the copy is on its way in memory that is given back now.
            wait(&event).inspect_err(|_| drop(shared.stream.synchronize()))?;
        }
        if let (Some(pinned), Some(target)) = (&self.pinned, &mut self.target) {
            let part = pinned.part(target.len_bytes());
            target.copy_from_slice(&part.read()?);
        }
        if let Some(pinned) = self.pinned.take() {
            shared
                .common
                .pinned
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(pinned);
        }
        Ok(())
    }
}

/// Waits for an event: asks over and over at first, then with pauses.
fn wait(event: &Event) -> GpuResult<()> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(5);
    while !event.is_reached()? {
        if begin.elapsed() < SPIN {
            std::hint::spin_loop();
        } else {
            thread::sleep(pause);
            pause = (pause * 2).min(SPIN);
        }
    }
    Ok(())
}

/// Returns the address of a part of a GPU's memory.
fn pointer(slice: &DeviceSlice) -> Result<DevicePointer, Error> {
    let memory = memory_of(slice)?;
    Ok(memory.block.pointer().offset(slice.range().start))
}

/// Returns a part of memory as a GPU's.
pub(crate) fn memory_of(slice: &DeviceSlice) -> Result<&GpuMemory, Error> {
    slice.downcast().ok_or_else(|| {
        let found = slice.memory().describe();
        Error::invalid_argument(format!("expected memory of a GPU, found {found}"))
    })
}

impl GpuMemory {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn pointer(&self) -> DevicePointer {
        self.block.pointer()
    }
}

impl DeviceBuffer for GpuMemory {
    fn device(&self) -> DeviceId {
        self.shared
            .common
            .id
            .get()
            .copied()
            .unwrap_or(DeviceId::HOST)
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn describe(&self) -> String {
        let platform = self.shared.stream.context().driver().platform();
        let (at, len, name) = (
            self.block.pointer(),
            self.len_bytes,
            &self.shared.common.name,
        );
        format!("GpuBuffer<pointer={at} ({platform}), size={len}> on {name}")
    }

    fn describe_tensor(&self, tensor: &TensorText<'_>) -> String {
        let platform = self.shared.stream.context().driver().platform();
        let at = self.block.pointer().offset(tensor.begin);
        let (dtype, shape) = (tensor.dtype, tensor.shape);
        format!("DenseGpuTensor<dtype={dtype}, shape={shape}, pointer={at} ({platform})>")
    }
}
