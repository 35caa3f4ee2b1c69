//! [`HostContext`]: the resources that all programs of a process share.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use tfrt_async::queue::{Clock, ConcurrentWorkQueue, TimerQueue};
use tfrt_async::record::Recorder;
use tfrt_async::{Error, HostAllocator, MemoryUser, SystemAllocator, register_memory_user};

use crate::device::Devices;
#[cfg(feature = "tensor")]
use crate::device::{Device, DeviceId};
use crate::executor::watch::LiveFrames;
use crate::kernel::KernelRegistry;
use crate::memory::LimitedAllocator;
use crate::output::Output;
use crate::stuck::Stuck;
use crate::trace::TraceSink;
use crate::type_map::TypeMap;

/// Limits of a request, beyond which it fails with `ResourceExhausted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest depth of calls within calls.
    pub max_depth: u32,
    /// The most kernels run and calls made, together.
    pub max_steps: Option<u64>,
    /// The most bytes from the host's allocator, of all requests together; enforced by an allocator that the builder
    /// puts around the given one. One request's share is limited by
    /// [`max_memory`](crate::RequestContextBuilder::max_memory) of its builder.
    pub max_memory: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_depth: 1_000_000,
            max_steps: None,
            max_memory: None,
        }
    }
}

impl Limits {
    /// Returns the error of a call that is one too deep.
    #[cold]
    pub fn depth_exceeded(&self) -> Error {
        let max_depth = self.max_depth;
        Error::resource_exhausted(format!("call depth exceeds the limit of {max_depth}"))
    }

    /// Returns the error of a request that takes one step too many.
    #[cold]
    pub fn steps_exceeded(&self) -> Error {
        let max_steps = self.max_steps.unwrap_or(u64::MAX);
        Error::resource_exhausted(format!(
            "the request takes more than the limit of {max_steps} steps"
        ))
    }
}

/// A function that hears each error once, when a kernel reports it.
pub type DiagnosticHandler = dyn Fn(&Error) + Send + Sync;

/// The queue, allocator, kernels and devices that programs run with. A counted handle.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let mut registry = KernelRegistry::new();
/// registry.add("my.one", || 1i32);
/// let host = HostContext::builder(registry).build();
/// assert_eq!(host.devices().list()[0].name(), "CPU:0");
/// ```
#[derive(Clone)]
pub struct HostContext {
    inner: Arc<Inner>,
    /// The allocator in place of the host's, of a request that has a limit of its own.
    allocator: Option<Arc<dyn HostAllocator>>,
}

struct Inner {
    queue: Arc<dyn ConcurrentWorkQueue>,
    allocator: Arc<dyn HostAllocator>,
    registry: Arc<KernelRegistry>,
    /// The MLIR names of the types that some registered kernel takes or gives, found when asked for:
    /// most programs fit.
    // Invariant: in order.
    known_types: OnceLock<Vec<&'static str>>,
    diagnostics: Arc<DiagnosticHandler>,
    output: Output,
    trace: Option<Arc<dyn TraceSink>>,
    counts_always: bool,
    recorder: Option<Arc<Recorder>>,
    /// Whether somebody wants to hear of each kernel: the limits, the trace or the recorder.
    is_watched: bool,
    devices: Devices,
    shared: Mutex<TypeMap<SharedCell>>,
    /// The clock of deadlines; `None` is the system's.
    clock: Option<Arc<dyn Clock>>,
    timers: Arc<TimerQueue>,
    watchdog: Arc<TimerQueue>,
    limits: Limits,
    stuck: Stuck,
    live: LiveFrames,
    /// Registers the host as a user of memory: the watchdog gives back memory that nobody uses; all of it goes back
    /// when the last host ends.
    _memory_user: MemoryUser,
}

type SharedCell = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

/// A function that puts a limit of so many bytes around an allocator.
type Limiter = fn(Arc<dyn HostAllocator>, usize) -> Arc<dyn HostAllocator>;

/// A builder of a [`HostContext`].
pub struct HostContextBuilder {
    registry: KernelRegistry,
    queue: Option<Arc<dyn ConcurrentWorkQueue>>,
    allocator: Option<Arc<dyn HostAllocator>>,
    diagnostics: Option<Arc<DiagnosticHandler>>,
    output: Output,
    trace: Option<Arc<dyn TraceSink>>,
    counts_always: bool,
    recorder: Option<Arc<Recorder>>,
    limits: Limits,
    /// The function that adds a limit on memory. It is known where limits are set, so that a program that sets none
    /// does not contain it.
    limiter: Option<Limiter>,
    stuck: Option<Stuck>,
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "tensor")]
    devices: Vec<MakeDevice>,
}

/// A function that makes a device for its number.
#[cfg(feature = "tensor")]
type MakeDevice = Box<dyn FnOnce(DeviceId) -> Arc<dyn Device> + Send>;

impl HostContextBuilder {
    /// Runs tasks on `queue`. Default: one worker for each processor that the process may use.
    pub fn queue(mut self, queue: Arc<dyn ConcurrentWorkQueue>) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Takes memory for calls and buffers from `allocator`. Default: the system's.
    pub fn allocator(mut self, allocator: Arc<dyn HostAllocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Tells `handler` about errors as they are reported. Default: nobody hears them. A panic of the
    /// handler is caught, and lost.
    pub fn diagnostics(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.diagnostics = Some(Arc::new(handler));
        self
    }

    /// Lets kernels print to `output`. Default: the process's standard output and error.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Tells `sink` the beginning and end of kernels, functions and programs.
    pub fn trace(mut self, sink: Arc<dyn TraceSink>) -> Self {
        self.trace = Some(sink);
        self
    }

    /// Runs kernels in dataflow order, by counting what each waits for, also where load has found an order: for
    /// comparisons. Functions marked synchronous keep theirs.
    pub fn dynamic_order(mut self, always: bool) -> Self {
        self.counts_always = always;
        self
    }

    /// Records the kernels that have run in `recorder`. A queue that is to record its tasks there too is given the same
    /// one.
    pub fn recorder(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Sets the limits of requests.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self.limiter = Some(|inner, bytes| Arc::new(LimitedAllocator::new(inner, bytes)));
        self
    }

    /// Sets what happens to requests that nothing can bring forward any more. Default: [`Stuck::FAIL`] if no kernel but
    /// those that come with tfrt is registered, else [`Stuck::Report`].
    pub fn stuck(mut self, stuck: Stuck) -> Self {
        self.stuck = Some(stuck);
        self
    }

    /// Lets timers of kernels, deadlines of requests and the look-out for stuck ones go by a clock. Default: the
    /// system's. Threads that wait for values with a deadline of their own go by that in any case.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Adds a device, which is made for its number. [`Devices::add`] does it later.
    ///
    /// # Panics
    ///
    /// When the host is made, if two devices have one name: a mistake of the program that embeds the runtime.
    #[cfg(feature = "tensor")]
    pub fn device(
        mut self,
        make: impl FnOnce(DeviceId) -> Arc<dyn Device> + Send + 'static,
    ) -> Self {
        self.devices.push(Box::new(make));
        self
    }

    /// Makes the host.
    pub fn build(self) -> HostContext {
        let devices = Devices::new();
        #[cfg(feature = "tensor")]
        for make in self.devices {
            let added = devices.add(make);
            assert!(added.is_ok(), "{added:?}");
        }
        let allocator = self
            .allocator
            .unwrap_or_else(|| Arc::new(SystemAllocator::new()));
        let allocator = match (self.limiter, self.limits.max_memory) {
            (Some(limited), Some(bytes)) => limited(allocator, bytes),
            _ => allocator,
        };
        let counts_steps = self.limits.max_steps.is_some();
        let is_watched = counts_steps || self.trace.is_some() || self.recorder.is_some();
        let default = match self.registry.is_built_in() {
            true => Stuck::FAIL,
            false => Stuck::Report,
        };
        let timers = || match &self.clock {
            Some(clock) => TimerQueue::with_clock(clock.clone()),
            None => TimerQueue::new(),
        };
        let (timers, watchdog) = (Arc::new(timers()), Arc::new(timers()));
        let memory_user = register_memory_user(&watchdog);
        HostContext::of(Arc::new(Inner {
            queue: self.queue.unwrap_or_else(crate::default_queue),
            allocator,
            registry: Arc::new(self.registry),
            known_types: OnceLock::new(),
            diagnostics: self.diagnostics.unwrap_or_else(|| Arc::new(|_| {})),
            output: self.output,
            trace: self.trace,
            counts_always: self.counts_always,
            is_watched,
            recorder: self.recorder,
            devices,
            shared: Mutex::default(),
            clock: self.clock,
            timers,
            watchdog,
            limits: self.limits,
            stuck: self.stuck.unwrap_or(default),
            live: LiveFrames::default(),
            _memory_user: memory_user,
        }))
    }
}

fn known_types_of(registry: &KernelRegistry) -> Vec<&'static str> {
    let mut known = Vec::new();
    for entry in registry.kernels().chain(registry.natives()) {
        let signature = entry.signature();
        let operands = signature.operands.iter().map(|operand| operand.type_name);
        let results = signature.results.iter().map(|result| result.type_name);
        for name in operands.chain(results).flatten() {
            if let Err(place) = known.binary_search(&name) {
                known.insert(place, name);
            }
        }
    }
    known
}

impl HostContext {
    /// Returns a builder of a host with these kernels, which its programs may use.
    pub fn builder(registry: KernelRegistry) -> HostContextBuilder {
        HostContextBuilder {
            registry,
            queue: None,
            allocator: None,
            diagnostics: None,
            output: Output::standard(),
            trace: None,
            counts_always: false,
            recorder: None,
            limits: Limits::default(),
            limiter: None,
            stuck: None,
            clock: None,
            #[cfg(feature = "tensor")]
            devices: Vec::new(),
        }
    }

    fn of(inner: Arc<Inner>) -> HostContext {
        HostContext {
            inner,
            allocator: None,
        }
    }

    /// Returns a handle of this host for a request that may hold so many bytes of its memory at once. Limits of several
    /// requests, and the host's own, count beside each other.
    pub(crate) fn limited(&self, max_memory: usize) -> HostContext {
        let of_host = self.inner.allocator.clone();
        HostContext {
            inner: self.inner.clone(),
            allocator: Some(Arc::new(LimitedAllocator::new(of_host, max_memory))),
        }
    }

    /// Returns how many requests for memory were refused for the limit of the request that this handle belongs to.
    pub(crate) fn own_refusals(&self) -> u64 {
        self.allocator.as_ref().map_or(0, |own| own.refusals())
    }

    /// Returns how many bytes the last refused request for memory asked for.
    pub(crate) fn own_last_refused_bytes(&self) -> u64 {
        let own = self.allocator.as_ref();
        own.map_or(0, |own| own.last_refused_bytes())
    }

    /// Returns the work queue.
    pub fn queue(&self) -> &Arc<dyn ConcurrentWorkQueue> {
        &self.inner.queue
    }

    /// Returns the allocator of calls and buffers. The host of a kernel's context is that of its request: if that has a
    /// [limit](crate::RequestContextBuilder::max_memory) of its own, the allocator counts against it.
    pub fn allocator(&self) -> &Arc<dyn HostAllocator> {
        self.allocator.as_ref().unwrap_or(&self.inner.allocator)
    }

    /// Returns the kernels.
    pub fn registry(&self) -> &KernelRegistry {
        &self.inner.registry
    }

    /// Returns the devices.
    pub fn devices(&self) -> &Devices {
        &self.inner.devices
    }

    /// Returns the time, by the clock that deadlines go by.
    pub fn now(&self) -> Instant {
        match &self.inner.clock {
            Some(clock) => clock.now(),
            None => Instant::now(),
        }
    }

    /// Returns the timers for what brings no request forward: deadlines, the watch for stuck requests, signs of life to other
    /// tasks. Nobody waits for them.
    pub fn watchdog(&self) -> &Arc<TimerQueue> {
        &self.inner.watchdog
    }

    /// Returns the policy for requests that nothing can bring forward any more.
    pub fn stuck(&self) -> Stuck {
        self.inner.stuck
    }

    /// Returns the timers for kernels, on a thread of their own. While one is pending no request is stuck.
    pub fn timers(&self) -> &Arc<TimerQueue> {
        &self.inner.timers
    }

    /// Returns where kernels print.
    pub fn output(&self) -> &Output {
        &self.inner.output
    }

    /// Returns the limits of requests.
    #[inline]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns how many requests for memory were refused for [`Limits::max_memory`].
    pub fn memory_refusals(&self) -> u64 {
        match self.inner.limits.max_memory {
            Some(_) => self.inner.allocator.refusals(),
            None => 0,
        }
    }

    /// Returns the sink of traces, if there is one.
    #[inline]
    pub fn trace(&self) -> Option<&Arc<dyn TraceSink>> {
        self.inner.trace.as_ref()
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.inner.is_watched
    }

    /// Returns the recorder, if there is one.
    pub fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.inner.recorder.as_ref()
    }

    /// Returns the one instance of `T` that belongs to this host, made when first asked for.
    pub fn shared<T: Send + Sync + 'static>(&self, make: impl FnOnce(&HostContext) -> T) -> Arc<T> {
        let cell = {
            let mut shared = self
                .inner
                .shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let cell = shared.get_or_insert_with::<T>(SharedCell::default);
            cell.clone()
        };
        // It outlives the request that asks first.
        let host = || HostContext::of(self.inner.clone());
        let instance = cell.get_or_init(|| Arc::new(make(&host()))).clone();
        instance.downcast().expect("the map is keyed by the type")
    }

    /// Returns the codecs of this host's types.
    #[cfg(feature = "tensor")]
    pub fn codecs(&self) -> Arc<crate::codec::Codecs> {
        self.shared(|host| crate::codec::Codecs::of(host.registry()))
    }

    /// Returns whether kernels are counted even where their order is known.
    pub(crate) fn counts_always(&self) -> bool {
        self.inner.counts_always
    }

    /// Reports an error to the diagnostic handler. A panic of the handler is lost: the executor is in the middle of
    /// something.
    pub(crate) fn tell(&self, error: &Error) {
        let told = catch_unwind(AssertUnwindSafe(|| (self.inner.diagnostics)(error)));
        crate::executor::forget_panic(told);
    }

    /// Returns how many calls are not over: they await something, or a thread is about to let go of them. A call may be
    /// among them when its results are there.
    pub fn n_open_calls(&self) -> usize {
        self.live_frames().len()
    }

    pub(crate) fn live_frames(&self) -> &LiveFrames {
        &self.inner.live
    }

    pub(crate) fn knows_type(&self, name: &str) -> bool {
        let make = || known_types_of(&self.inner.registry);
        let known_types = self.inner.known_types.get_or_init(make);
        known_types.binary_search(&name).is_ok()
    }

    pub(crate) fn downgrade(&self) -> WeakHost {
        WeakHost(Arc::downgrade(&self.inner))
    }
}

impl fmt::Debug for HostContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostContext")
            .field("queue", &self.queue().name())
            .field("allocator", &self.allocator().name())
            .field("limits", self.limits())
            .finish_non_exhaustive()
    }
}

/// A weak handle of a [`HostContext`], which keeps nothing alive.
pub(crate) struct WeakHost(Weak<Inner>);

impl WeakHost {
    pub(crate) fn upgrade(&self) -> Option<HostContext> {
        self.0.upgrade().map(HostContext::of)
    }
}
