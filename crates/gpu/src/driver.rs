//! [`Driver`]: the border between this crate and what drives GPUs; its handles, errors and properties.
//!
//! Two drivers are there from the first day: [`cuda`], NVIDIA's, opened at run time, and [`sim`], a simulated one that
//! checks what it is asked for. `conformance::suite` is what both keep.
//!
//! There is no current context: each call names the one that it is for. Handles are numbers; owners above this
//! module (contexts, streams) see to it that each is given back once, in order.

use std::fmt;
use std::time::Duration;

use tfrt_host::memory::{HostBuffer, OwnedReading, OwnedWriting};

pub mod cuda;
mod error;
pub mod library;
mod load;
pub mod sim;

pub use error::{GpuError, GpuErrorKind, GpuResult};

use library::{LibraryCall, Member};

/// The driver of GPUs: the calls of CUDA's driver API that the runtime needs. Calls are asynchronous where CUDA's are.
///
/// # Promises
///
/// * Commands of one stream run in the order of their calls. Those of two streams run in any order, but for what
///   [`wait_event`](Self::wait_event) says.
/// * What a copy holds of the host is held until the host has learned that the copy is over: by a synchronisation, or by
///   a query that says so.
/// * A handle that does not exist, or belongs to another context, is refused, and nothing has happened.
/// * After an error of kind [`Sticky`](GpuErrorKind::Sticky) every call for the context fails with it.
pub trait Driver: Send + Sync + 'static {
    /// Returns what the driver is for.
    fn platform(&self) -> Platform;

    /// Returns the version of the driver API, as CUDA counts: 13000 is 13.0.
    fn version(&self) -> GpuResult<i32>;

    /// Returns the number of devices.
    fn n_devices(&self) -> GpuResult<i32>;

    /// Returns the device of an ordinal.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if there is none.
    fn device(&self, ordinal: i32) -> GpuResult<DeviceOrdinal>;

    /// Returns what a device is and has.
    fn properties(&self, device: DeviceOrdinal) -> GpuResult<DeviceProperties>;

    /// Retains the context that all users of a device in this process share.
    fn retain_primary(&self, device: DeviceOrdinal) -> GpuResult<RawContext>;

    /// Releases the shared context once.
    fn release_primary(&self, device: DeviceOrdinal) -> GpuResult<()>;

    /// Makes a context of one's own on a device.
    fn create_context(&self, device: DeviceOrdinal) -> GpuResult<RawContext>;

    /// Takes away a context of one's own, of which nothing is left.
    fn destroy_context(&self, context: RawContext) -> GpuResult<()>;

    /// Waits until all commands of a context are done.
    fn synchronize_context(&self, context: RawContext) -> GpuResult<()>;

    /// Makes a stream, which does not wait for the context's own.
    fn create_stream(&self, context: RawContext) -> GpuResult<RawStream>;

    /// Takes a stream away. Commands that are queued still run.
    fn destroy_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()>;

    /// Returns whether all commands of a stream are done.
    fn query_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<bool>;

    /// Waits until all commands of a stream are done.
    fn synchronize_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()>;

    /// Lets what a stream is given from now on wait for the last record of an event.
    fn wait_event(&self, context: RawContext, stream: RawStream, event: RawEvent) -> GpuResult<()>;

    /// Makes an event, which tells times only if asked to.
    fn create_event(&self, context: RawContext, is_timing: bool) -> GpuResult<RawEvent>;

    /// Takes an event away.
    fn destroy_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()>;

    /// Queues a record of an event: it is reached when what the stream was given before is done.
    fn record_event(
        &self,
        context: RawContext,
        event: RawEvent,
        stream: RawStream,
    ) -> GpuResult<()>;

    /// Returns whether the last record of an event is reached; so is that of an event without any.
    fn query_event(&self, context: RawContext, event: RawEvent) -> GpuResult<bool>;

    /// Waits until the last record of an event is reached.
    fn synchronize_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()>;

    /// Returns the time between the records of two events that tell times, and are reached.
    fn elapsed(&self, context: RawContext, from: RawEvent, to: RawEvent) -> GpuResult<Duration>;

    /// Allocates memory of the device, whose contents are anything. Its address is a multiple of 256.
    fn allocate(&self, context: RawContext, len_bytes: usize) -> GpuResult<DevicePointer>;

    /// Frees memory of the device that no command uses any more.
    fn free(&self, context: RawContext, pointer: DevicePointer) -> GpuResult<()>;

    /// Returns how much of the device's memory is free, and how much there is.
    fn memory_info(&self, context: RawContext) -> GpuResult<MemoryInfo>;

    /// Pins a buffer of the host to its pages, so that copies from and to it need not wait. It is held until then.
    fn register(&self, context: RawContext, buffer: HostBuffer) -> GpuResult<RawPinned>;

    /// Lets go of a pinned buffer that no copy uses any more.
    fn unregister(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()>;

    /// Lends a pinned buffer to the device, where kernels reach it by the address, which is always the same. The host has
    /// no right to it until it is [taken back](Self::take_back).
    fn lend(
        &self,
        context: RawContext,
        pinned: RawPinned,
        right: OwnedWriting,
    ) -> GpuResult<DevicePointer>;

    /// Gives a lent buffer back to the host, after all commands that use it.
    fn take_back(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()>;

    /// Queues a copy.
    fn copy(&self, context: RawContext, stream: RawStream, transfer: Transfer) -> GpuResult<()>;

    /// Queues the filling of memory with copies of a value.
    fn fill(
        &self,
        context: RawContext,
        stream: RawStream,
        at: DevicePointer,
        value: Fill,
        n: usize,
    ) -> GpuResult<()>;

    /// Loads a module: text of PTX, or for a driver that takes it a compiled image.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_PTX` or `CUDA_ERROR_INVALID_IMAGE`, with what is wrong.
    fn load_module(&self, context: RawContext, image: &[u8]) -> GpuResult<RawModule>;

    /// Takes a module away that no queued launch uses.
    fn unload_module(&self, context: RawContext, module: RawModule) -> GpuResult<()>;

    /// Returns the kernel of a name.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if the module has none.
    fn function(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<RawFunction>;

    /// Returns the place of a module's variable, and its number of bytes.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if the module has none of the name.
    fn global(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<(DevicePointer, usize)>;

    /// Returns what a kernel takes.
    fn function_info(&self, context: RawContext, function: RawFunction) -> GpuResult<FunctionInfo>;

    /// Queues a launch of a kernel.
    ///
    /// # Safety
    ///
    /// The arguments are those that the kernel takes, in number, size and meaning, and the kernel touches nothing but
    /// memory that the caller may read or write: on a GPU nothing else stops it.
    #[expect(unsafe_code, reason = "callers answer for what a kernel touches")]
    unsafe fn launch(
        &self,
        context: RawContext,
        stream: RawStream,
        function: RawFunction,
        grid: &Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()>;

    /// Queues a call of a library.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the driver has none.
    fn call(&self, _context: RawContext, _stream: RawStream, _call: LibraryCall) -> GpuResult<()> {
        Err(no_libraries())
    }

    /// Queues exchanges of the members of a group, for all of them at once.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the driver has none.
    fn exchange(&self, _members: &[Member]) -> GpuResult<()> {
        Err(no_libraries())
    }

    /// Begins to capture: the launches, fills and copies within the device that a stream is given from now on are recorded
    /// for a graph, and do not run. Only one stream takes part.
    ///
    /// Meanwhile other calls for the stream, and waiting for the context, are refused with
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`. They spoil the capture, whose end then fails.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the driver has no graphs; `CUDA_ERROR_ILLEGAL_STATE` if the stream captures already.
    fn begin_capture(&self, _context: RawContext, _stream: RawStream) -> GpuResult<()> {
        Err(no_graphs())
    }

    /// Ends a capture, and returns what was recorded. The stream runs what it is given from now on.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` if the stream does not capture; `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` if a call has
    /// spoiled the capture, which is over then.
    fn end_capture(&self, _context: RawContext, _stream: RawStream) -> GpuResult<RawGraph> {
        Err(no_graphs())
    }

    /// Makes of a graph what can be launched.
    fn instantiate(&self, _context: RawContext, _graph: RawGraph) -> GpuResult<RawExecutable> {
        Err(no_graphs())
    }

    /// Takes a graph away. What was made of it stays.
    fn destroy_graph(&self, _context: RawContext, _graph: RawGraph) -> GpuResult<()> {
        Err(no_graphs())
    }

    /// Queues all commands of a graph, in their order. Launches of one executable graph run one after the other, also on
    /// several streams.
    ///
    /// # Safety
    ///
    /// The modules and the memory that its commands use are there, and what was said of each launch holds again.
    #[expect(unsafe_code, reason = "callers answer for what kernels touch")]
    unsafe fn launch_graph(
        &self,
        _context: RawContext,
        _stream: RawStream,
        _executable: RawExecutable,
    ) -> GpuResult<()> {
        Err(no_graphs())
    }

    /// Takes an executable graph away. Launches that are queued still run.
    fn destroy_executable(
        &self,
        _context: RawContext,
        _executable: RawExecutable,
    ) -> GpuResult<()> {
        Err(no_graphs())
    }

    /// Tells of memory what calls do not: that a part of a block was taken for work of a stream, or given back. Only a
    /// driver that checks listens.
    fn note(&self, _context: RawContext, _stream: RawStream, _note: Note) {}
}

fn no_libraries() -> GpuError {
    let detail = "this driver has no libraries of linear algebra, neural networks, Fourier transforms and exchange";
    GpuError::new("", "CUDA_ERROR_NOT_SUPPORTED", GpuErrorKind::Unavailable).detail(detail)
}

fn no_graphs() -> GpuError {
    let error = GpuError::new("", "CUDA_ERROR_NOT_SUPPORTED", GpuErrorKind::Unavailable);
    error.detail("this driver has no graphs")
}

/// The kind of machines that a driver is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// NVIDIA's.
    Cuda,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Platform::Cuda => "CUDA",
        })
    }
}

/// Makes types of handles: numbers that only their driver understands.
///
/// `handles! { /// A stream. RawStream }` makes `pub struct RawStream(pub(crate) u64)`.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub(crate) u64);
        )*
    };
}

handles! {
    /// A device of a driver.
    DeviceOrdinal
    /// A context: what a process has on a device.
    RawContext
    /// A queue of commands.
    RawStream
    /// A mark in a queue.
    RawEvent
    /// Compiled kernels.
    RawModule
    /// A kernel.
    RawFunction
    /// A pinned buffer of the host.
    RawPinned
    /// Commands that a capture has recorded.
    RawGraph
    /// A graph that can be launched.
    RawExecutable
    /// An address in a device's memory.
    DevicePointer
}

impl DevicePointer {
    /// Returns the address so many bytes further on, in the same block.
    pub(crate) fn offset(self, n_bytes: usize) -> DevicePointer {
        DevicePointer(self.0 + n_bytes as u64)
    }
}

impl fmt::Display for DevicePointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Its name.
    pub name: String,
    /// Its compute capability: major, minor.
    pub capability: (i32, i32),
    /// Bytes of memory.
    pub len_bytes: usize,
    /// Number of multiprocessors.
    pub n_multiprocessors: u32,
    /// Most threads in a block.
    pub max_threads: u32,
    /// Most threads of a block along each dimension.
    pub max_block: [u32; 3],
    /// Most blocks along each dimension.
    pub max_grid: [u32; 3],
    /// Most bytes of shared memory in a block, if nothing else is asked for.
    pub max_shared_bytes: u32,
}

/// How much memory of a device is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Free bytes.
    pub free_bytes: usize,
    /// All bytes.
    pub total_bytes: usize,
}

/// A copy: from where, and to where.
#[derive(Debug)]
pub enum Transfer {
    /// From the host to the device.
    Up {
        /// The source, held until the copy is over.
        from: OwnedReading,
        /// The target.
        to: DevicePointer,
    },
    /// From the device to the host.
    Down {
        /// The source.
        from: DevicePointer,
        /// The target, held until the copy is over.
        to: OwnedWriting,
    },
    /// Within the device.
    Within {
        /// The source.
        from: DevicePointer,
        /// The target, which does not overlap the source.
        to: DevicePointer,
        /// The number of bytes.
        len_bytes: usize,
    },
}

/// The value that memory is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// A byte.
    Byte(u8),
    /// Two bytes.
    Half(u16),
    /// Four bytes.
    Word(u32),
}

impl Fill {
    /// Returns the number of bytes of the value.
    pub fn len_bytes(self) -> usize {
        match self {
            Fill::Byte(_) => 1,
            Fill::Half(_) => 2,
            Fill::Word(_) => 4,
        }
    }
}

/// How many threads run a kernel: blocks, threads in each, and shared memory that a block has beside the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of blocks along each dimension.
    pub blocks: [u32; 3],
    /// Number of threads in a block along each dimension.
    pub threads: [u32; 3],
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

impl Grid {
    /// Returns a grid of one dimension.
    pub fn linear(n_blocks: u32, n_threads: u32) -> Grid {
        Grid {
            blocks: [n_blocks, 1, 1],
            threads: [n_threads, 1, 1],
            shared_bytes: 0,
        }
    }
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// An address of the device; `None` is the address 0.
    Pointer(Option<DevicePointer>),
    /// An integer of four bytes.
    U32(u32),
    /// A number of four bytes.
    F32(f32),
    /// An integer of eight bytes.
    U64(u64),
    /// A number of eight bytes.
    F64(f64),
    /// A structure, as it lies in memory.
    Bytes(&'a [u8]),
}

impl Argument<'_> {
    /// Appends the argument's bytes.
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Argument::Pointer(pointer) => {
                let address = pointer.map_or(0, |pointer| pointer.0);
                bytes.extend(address.to_ne_bytes());
            }
            Argument::U32(value) => bytes.extend(value.to_ne_bytes()),
            Argument::F32(value) => bytes.extend(value.to_ne_bytes()),
            Argument::U64(value) => bytes.extend(value.to_ne_bytes()),
            Argument::F64(value) => bytes.extend(value.to_ne_bytes()),
            Argument::Bytes(value) => bytes.extend(*value),
        }
    }
}

/// Parameters and bounds of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The most threads in a block.
    pub max_threads: u32,
    /// Bytes of shared memory that a block has of its own.
    pub shared_bytes: u32,
    /// Sizes of the parameters, if the driver tells.
    pub parameters: Option<Vec<usize>>,
}

/// An event in the life of a part of a block of memory, in the order of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It was taken: its contents are anything, and nobody else uses it.
    Take(DevicePointer, usize),
    /// It was given back: nobody uses it from then on.
    Give(DevicePointer, usize),
}
