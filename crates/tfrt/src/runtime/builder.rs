//! [`RuntimeBuilder`]: a builder of a [`Runtime`].

use std::sync::Arc;

use tfrt_async::queue::{
    Clock, ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue,
};
use tfrt_corert::CoreRuntime;
use tfrt_host::codec::ValueCodec;
use tfrt_host::device::Device;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::record::Recorder;
use tfrt_host::trace::TraceSink;
use tfrt_host::{
    DEFAULT_BLOCKING_THREADS, DeviceId, Error, HostAllocator, HostContext, HostContextBuilder,
    Limits, Output, Stuck,
};

use tfrt_tensor::op::OpKernel;

use super::Runtime;
use crate::formats::Formats;
use crate::untrusted::{Untrusted, is_refused};

/// A builder of a [`Runtime`].
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
    formats: Formats,
    op_kernels: Vec<OpKernel>,
    #[cfg(feature = "plugins")]
    plugins: Vec<tfrt_capi::rows::PluginOps>,
}

impl RuntimeBuilder {
    pub(super) fn new(registry: KernelRegistry) -> RuntimeBuilder {
        RuntimeBuilder {
            registry,
            settings: Box::new(|builder| builder),
            untrusted: None,
            formats: Formats::builtin(),
            op_kernels: Vec::new(),
            #[cfg(feature = "plugins")]
            plugins: Vec::new(),
        }
    }

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

    /// Adds kernels of operations for devices beside the host. Programs call them by `KIND.graph.ROW`, and nodes of a model
    /// run on such a device if the model is opened for it ([`OpenOptions::device`](crate::OpenOptions::device)); single
    /// operations by the device's handler ([`CoreRuntime::on`]).
    ///
    /// The rows are built-in ones, or those of the runtime's [formats](Self::formats).
    pub fn op_kernels(mut self, kernels: &[OpKernel]) -> Self {
        self.op_kernels.extend_from_slice(kernels);
        self
    }

    /// Adds the operations of plugins: programs and single calls find them on the processor, by names as `tf.MatMul`. Of
    /// an operation that the runtime has too, a call goes to the plugin's kernel if one of a priority above 0 takes the types
    /// of the inputs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tfrt::eager::Eager;
    /// use tfrt::{Plugin, PluginOps, Runtime};
    ///
    /// // SAFETY: the library's code runs in this process; it is trusted.
    /// let plugin = unsafe { Plugin::load("libfoo.so")? };
    /// for kernel in plugin.kernels() {
    ///     println!("{} {} {}", kernel.op(), kernel.device(), kernel.constraints());
    /// }
    /// let runtime = Runtime::builder().plugins(PluginOps::new([&plugin])).build();
    /// let eager = Eager::new(&runtime);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "plugins")]
    pub fn plugins(mut self, ops: tfrt_capi::rows::PluginOps) -> Self {
        self.plugins.push(ops);
        self
    }

    /// Sets the formats that models are read by, with the kernels of their own operations. Default: the built-in ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::{Formats, Runtime};
    ///
    /// let runtime = Runtime::builder().formats(Formats::builtin()).build();
    /// assert_eq!(runtime.formats().names(), "ONNX, SavedModel, StableHLO");
    /// ```
    pub fn formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
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
    /// its context: [`ContextBuilder::max_memory`](crate::ContextBuilder::max_memory).
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
    ///
    /// # Panics
    ///
    /// If there is another kernel already of the name that one of a format has, or of [`op_kernels`](Self::op_kernels); or if
    /// there is no row that one of these is for.
    pub fn build(mut self) -> Runtime {
        self.formats.add_kernels(&mut self.registry);
        let rows = self.formats.rows();
        tfrt_tensor::op::register(&mut self.registry, &self.op_kernels, rows);
        let host = (self.settings)(HostContext::builder(self.registry)).build();
        let op_kernels: Arc<[OpKernel]> = self.op_kernels.into();
        let core = CoreRuntime::new(&host);
        core.set_kernels(tfrt_kernels::rows::find);
        core.set_device_kernels(op_kernels.clone());
        #[cfg(feature = "dist")]
        crate::dist_compiler::register(&host);
        #[cfg(feature = "plugins")]
        for ops in self.plugins {
            core.add_ops(std::sync::Arc::new(ops));
        }
        Runtime {
            host,
            untrusted: self.untrusted,
            formats: self.formats,
            op_kernels,
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
