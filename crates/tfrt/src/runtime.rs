//! [`Runtime`]: what all programs of a process share.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tfrt_async::queue::{
    Clock, ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue,
};
use tfrt_host::codec::ValueCodec;
use tfrt_host::device::Device;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::record::Recorder;
use tfrt_host::trace::TraceSink;
use tfrt_host::{
    AnyAsyncValue, DEFAULT_BLOCKING_THREADS, DeviceId, Error, HostAllocator, HostContext,
    HostContextBuilder, Limits, Output, Stuck,
};
use tfrt_ir::Source;

use crate::context::{Context, ContextBuilder};
use crate::error::OpenError;
use crate::input::Input;
use crate::model::Model;
use crate::program::Program;
use crate::untrusted::{Untrusted, is_refused};

/// A work queue, an allocator and kernels, shared by any number of programs. A counted handle.
///
/// # Examples
///
/// Several programs, one budget of threads:
///
/// ```
/// use tfrt::Runtime;
///
/// let runtime = Runtime::new();
/// let one = runtime.compile("one.mlir", "func.func @f() -> i32 {
///   %a = tfrt.constant.i32 1
///   tfrt.return %a : i32
/// }")?;
/// let two = runtime.compile("two.mlir", "func.func @f() -> i32 {
///   %a = tfrt.constant.i32 2
///   tfrt.return %a : i32
/// }")?;
/// let context = runtime.context();
/// let calls = [one, two].map(|program| program.function("f").unwrap().call(&context, ()));
/// let sum: i32 = calls.into_iter().map(|call| *call.wait().unwrap().get::<i32>(0).unwrap()).sum();
/// assert_eq!(sum, 3);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Runtime {
    host: HostContext,
    untrusted: Option<Untrusted>,
}

impl Runtime {
    /// Makes a runtime with one worker for each processor that the process may use, the system's
    /// allocator, and the kernels that come with this crate.
    pub fn new() -> Runtime {
        Runtime::builder().build()
    }

    /// Begins to put a runtime together.
    pub fn builder() -> RuntimeBuilder {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        tfrt_corert::kernels::register(&mut registry);
        RuntimeBuilder {
            registry,
            settings: Box::new(|builder| builder),
            untrusted: None,
        }
    }

    /// Returns the runtime that [`Program::open`] uses: made when first asked for, with the
    /// defaults of [`Runtime::new`].
    pub fn shared() -> &'static Runtime {
        static SHARED: OnceLock<Runtime> = OnceLock::new();
        SHARED.get_or_init(Runtime::new)
    }

    /// Opens the program in a file: MLIR text or BEF bytes, told apart by content.
    ///
    /// # Errors
    ///
    /// Every reason why the file is no program for this runtime, as far as the first stage that
    /// refuses it can tell.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Program, OpenError> {
        self.load(&self.read(path)?)
    }

    /// Opens a program given as MLIR text; `name` is the file that messages speak of.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn compile(&self, name: &str, text: impl Into<String>) -> Result<Program, OpenError> {
        self.load(&Input::Text(Source::new(name, text)))
    }

    /// Opens the model in a file: ONNX, MLIR text in the dialect `onnx`, or what `tfrt compile` has made
    /// of these; told apart by content.
    ///
    /// # Errors
    ///
    /// As of [`Model::open`].
    pub fn open_model(&self, path: impl AsRef<Path>) -> Result<Model, OpenError> {
        self.load_model(&self.read(path)?)
    }

    /// Reads a file, or standard input for `-`, within the limits of the runtime.
    ///
    /// # Errors
    ///
    /// As of [`Input::read`].
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Input, OpenError> {
        match &self.untrusted {
            Some(untrusted) => untrusted.read(path),
            None => Input::read(path),
        }
    }

    /// Opens a model that was read before.
    ///
    /// # Errors
    ///
    /// As of [`Model::open`].
    pub fn load_model(&self, input: &Input) -> Result<Model, OpenError> {
        Model::from_program(self.load(input)?, self)
    }

    /// Opens a program that was read before.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn load(&self, input: &Input) -> Result<Program, OpenError> {
        let (file, weights) = match &self.untrusted {
            Some(untrusted) => (untrusted.open(input)?, input.clone().alone().weights()),
            None => (input.open()?, input.weights()),
        };
        Ok(Program::from_file(file, self)?.with_weights(weights))
    }

    /// Makes a context for calls, without a deadline unless the runtime is for
    /// [untrusted](RuntimeBuilder::untrusted) programs.
    pub fn context(&self) -> Context {
        self.context_builder().build()
    }

    /// Begins to put a context together.
    pub fn context_builder(&self) -> ContextBuilder {
        let builder = ContextBuilder::new(&self.host);
        match &self.untrusted {
            Some(untrusted) => builder.deadline(untrusted.max_time),
            None => builder,
        }
    }

    /// Waits on this thread, for a time at most, until all values are settled; tells whether they are.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which must not wait.
    pub fn wait_timeout(&self, values: &[AnyAsyncValue], timeout: Duration) -> Result<bool, Error> {
        wait_timeout(self.host.queue(), values, timeout)
    }

    /// Waits until no task is queued or running.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which would wait for itself.
    pub fn quiesce(&self) -> Result<(), Error> {
        self.host
            .queue()
            .quiesce()
            .map_err(|refused| Error::failed_precondition(refused.to_string()))
    }

    /// The host context below.
    pub fn host(&self) -> &HostContext {
        &self.host
    }
}

/// Waits, for a time at most, until all values are settled.
pub(crate) fn wait_timeout(
    queue: &Arc<dyn ConcurrentWorkQueue>,
    values: &[AnyAsyncValue],
    timeout: Duration,
) -> Result<bool, Error> {
    // Later than the clock can tell is never.
    let settled = queue.await_until(values, Instant::now().checked_add(timeout));
    settled.map_err(|refused| Error::failed_precondition(refused.to_string()))
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::new()
    }
}

/// Puts a [`Runtime`] together.
///
/// # Examples
///
/// A service's: four threads, a GiB of memory for all requests together, and a log of what goes wrong.
///
/// ```
/// use tfrt::{Limits, Runtime};
///
/// let limits = Limits { max_memory: Some(1 << 30), ..Limits::default() };
/// let runtime = Runtime::builder()
///     .threads(4)
///     .limits(limits)
///     .diagnostics(|error| eprintln!("{error}"))
///     .build();
/// assert_eq!(runtime.host().limits().max_memory, Some(1 << 30));
/// ```
pub struct RuntimeBuilder {
    registry: KernelRegistry,
    settings: Box<dyn FnOnce(HostContextBuilder) -> HostContextBuilder>,
    untrusted: Option<Untrusted>,
}

impl RuntimeBuilder {
    /// Starts from no kernels at all instead of those that come with this crate.
    pub fn without_kernels(mut self) -> Self {
        self.registry = KernelRegistry::new();
        self
    }

    /// Adds kernels.
    ///
    /// # Panics
    ///
    /// If there is a kernel of the same name already.
    pub fn kernels(mut self, register: impl FnOnce(&mut KernelRegistry)) -> Self {
        register(&mut self.registry);
        self
    }

    /// Adds codecs: how values of types of one's own become bytes, and bytes values.
    /// [`Codecs::add`](crate::host::codec::Codecs::add) of `runtime.host().codecs()` does it later.
    ///
    /// # Panics
    ///
    /// If there is a codec of the same type and version already.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
    /// use tfrt::{AnyAsyncValue, Error, Heap, Runtime, Value};
    ///
    /// struct Celsius(f64);
    ///
    /// impl Value for Celsius {
    ///     const NAME: &'static str = "!my.celsius";
    ///     type Storage = Heap;
    /// }
    ///
    /// fn encode(value: &AnyAsyncValue, encoder: &mut Encoder) -> Result<(), Error> {
    ///     encoder.bytes(&expect::<Celsius>(value)?.0.to_le_bytes());
    ///     Ok(())
    /// }
    ///
    /// fn decode(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<AnyAsyncValue, Error> {
    ///     Ok(AnyAsyncValue::new(Celsius(f64::from_le_bytes(decoder.array()?))))
    /// }
    ///
    /// const CODECS: &[ValueCodec] = &[ValueCodec { type_name: Celsius::NAME, version: 1, encode, decode }];
    ///
    /// let runtime = Runtime::builder().codecs(CODECS).build();
    /// assert!(runtime.host().codecs().newest("!my.celsius").is_some());
    /// ```
    pub fn codecs(mut self, codecs: &'static [ValueCodec]) -> Self {
        self.registry.add_codecs(codecs);
        self
    }

    /// Adds a device, which is made for its number: a [`Device`] is memory, and copies from and to it. The example
    /// `examples/fake_device` is one of one's own. [`Devices::add`](crate::host::device::Devices::add) of
    /// `runtime.host().devices()` does it later.
    ///
    /// # Panics
    ///
    /// When the runtime is [built](Self::build), if two devices have one name.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tfrt::Runtime;
    /// use tfrt::host::device::HostDevice;
    ///
    /// let runtime = Runtime::builder()
    ///     .device(|id| Arc::new(HostDevice::new(id, "CPU:1")))
    ///     .build();
    /// let device = runtime.host().devices().get("CPU:1").expect("it was added");
    /// assert_eq!((device.id().index(), device.kind().name()), (1, "cpu"));
    /// ```
    pub fn device(self, make: impl FnOnce(DeviceId) -> Arc<dyn Device> + Send + 'static) -> Self {
        self.with(|builder| builder.device(make))
    }

    /// Runs tasks on `queue`. Default: one worker for each processor.
    pub fn queue(self, queue: Arc<dyn ConcurrentWorkQueue>) -> Self {
        self.with(|builder| builder.queue(queue))
    }

    /// Runs tasks on so many workers, at least one; on the caller's thread alone where no thread can be started.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Runtime;
    ///
    /// let runtime = Runtime::builder().threads(2).build();
    /// assert!(runtime.host().queue().name().contains('2'));
    /// ```
    pub fn threads(self, n_threads: usize) -> Self {
        let queue = MultiThreadedWorkQueue::new(n_threads.max(1), DEFAULT_BLOCKING_THREADS);
        match queue {
            Ok(queue) => self.queue(Arc::new(queue)),
            Err(_) => self.queue(Arc::new(SingleThreadedWorkQueue::new())),
        }
    }

    /// Takes memory for calls and buffers from `allocator`. Default: the system's.
    pub fn allocator(self, allocator: Arc<dyn HostAllocator>) -> Self {
        self.with(|builder| builder.allocator(allocator))
    }

    /// Sets what a request may use, and how much memory all of them together. What one may have of that is a matter of
    /// its context: [`ContextBuilder::max_memory`].
    pub fn limits(self, limits: Limits) -> Self {
        self.with(move |builder| builder.limits(limits))
    }

    /// Makes the runtime one for programs that nobody vouches for: sets limits, gives each context a deadline,
    /// reads files of bounded length and none beside them, and takes out the kernels that such a program must
    /// not have, of those that are there now. See [`Untrusted`].
    pub fn untrusted(mut self, untrusted: Untrusted) -> Self {
        self.registry.retain(|entry| !is_refused(entry.name()));
        self.untrusted = Some(untrusted);
        self.limits(untrusted.limits)
    }

    /// Sets what happens to requests that nothing can bring forward any more. Default: what they await fails, unless
    /// kernels are added that don't come with this crate: then the handler of [`diagnostics`](Self::diagnostics) is told.
    pub fn stuck(self, stuck: Stuck) -> Self {
        self.with(move |builder| builder.stuck(stuck))
    }

    /// Lets timers and deadlines go by a clock: see [`HostContextBuilder::clock`]. Default: the system's.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.with(|builder| builder.clock(clock))
    }

    /// Tells `handler` of each error once, when a kernel reports it. Default: nobody hears them,
    /// and they are found in results only.
    pub fn diagnostics(self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.with(|builder| builder.diagnostics(handler))
    }

    /// Leads what kernels print and log elsewhere. Default: the process's standard output and
    /// standard error.
    pub fn output(self, output: Output) -> Self {
        self.with(|builder| builder.output(output))
    }

    /// Tells `sink` what begins and ends. See `TracingSink` (feature `tracing`) for one that
    /// speaks to the crate `tracing`.
    pub fn trace(self, sink: Arc<dyn TraceSink>) -> Self {
        self.with(|builder| builder.trace(sink))
    }

    /// Keeps what runs, and when, in `recorder`: see [`host::record`](crate::host::record).
    pub fn recorder(self, recorder: Arc<Recorder>) -> Self {
        self.with(|builder| builder.recorder(recorder))
    }

    /// Finds the order of kernels while they run, also where load has found one: for comparisons.
    pub fn dynamic_order(self, always: bool) -> Self {
        self.with(move |builder| builder.dynamic_order(always))
    }

    /// Makes the runtime.
    pub fn build(self) -> Runtime {
        let host = (self.settings)(HostContext::builder(self.registry)).build();
        Runtime {
            host,
            untrusted: self.untrusted,
        }
    }

    fn with(
        mut self,
        setting: impl FnOnce(HostContextBuilder) -> HostContextBuilder + 'static,
    ) -> Self {
        let before = self.settings;
        self.settings = Box::new(|builder| setting(before(builder)));
        self
    }
}
