//! [`Device`]: the contract between the runtime and implementations of other devices.
//!
//! # Who checks
//!
//! The types here check that a [`DeviceSlice`] lies in its memory, and that rights to host buffers are held. A device
//! trusts that. It asks [`Source::expect_len_of`] before each copy, and reports what its caller could not foresee:
//! that there is no memory, that the device is lost. `conformance::suite` tries what is promised.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error};

use super::{DeviceId, DeviceKind};
use crate::RequestContext;
use crate::memory::{OwnedReading, OwnedWriting};

/// A device: memory of some kind, and copies from and to it.
///
/// # Copies
///
/// * A copy begins when all of `after` are there. If one has failed, nothing is copied, and the chain fails with its error.
/// * Source and target are dropped before the chain settles: who goes on from the chain may use the host's buffers, and
///   memory of the device that nobody else holds is given back then.
/// * Two copies of which neither waits for the other may run in any order, and at one time.
/// * A copy between places of different lengths copies nothing, and fails with `InvalidArgument`.
/// * A copy does not block the thread that asks for it for longer than it takes to move the bytes.
pub trait Device: Send + Sync + 'static {
    /// Returns the kind, which chooses kernels.
    fn kind(&self) -> DeviceKind;

    /// Returns the name: `GPU:0`, `/job:worker/task:1/CPU:0`.
    fn name(&self) -> &str;

    /// Returns the kind of the device's memory.
    fn memory(&self) -> MemoryKind;

    /// Allocates memory, whose contents are anything; `alignment` is a power of two.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is none left.
    fn allocate(
        &self,
        request: &RequestContext,
        len_bytes: usize,
        alignment: usize,
    ) -> Result<DeviceMemory, Error>;

    /// Copies between this device and host memory, or between two places of its own; also from or to a device that it
    /// reaches [directly](Self::direct).
    fn copy(&self, from: Source, to: Target, after: &[AnyAsyncValue]) -> AsyncValue<Chain>;

    /// Returns whether [`copy`](Self::copy) reaches memory of another device without the host between them.
    fn direct(&self, _other: &dyn Device) -> bool {
        false
    }

    /// Frees memory that is kept for reuse. Asked when memory runs out.
    fn trim(&self) {}

    /// Returns the name that programs and messages use for the format of tensors in the device's memory.
    fn tensor_format(&self) -> &'static str {
        "Device"
    }
}

impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.name(), self.kind())
    }
}

/// The kind of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory of the host.
    Host,
    /// Memory of the host, in pages that stay where they are, so that a device reaches them.
    HostPinned,
    /// Memory that only the device reads.
    Device,
    /// Memory of another process or machine.
    Remote,
}

impl MemoryKind {
    /// Returns whether the host reads it through a slice.
    pub fn is_host(self) -> bool {
        matches!(self, MemoryKind::Host | MemoryKind::HostPinned)
    }
}

/// A block of a device's memory. Dropped with its last handle, it is given back in the order of the device's work.
pub trait DeviceBuffer: Any + Send + Sync {
    /// Returns the device that the memory belongs to.
    fn device(&self) -> DeviceId;

    /// Returns the number of bytes.
    fn len_bytes(&self) -> usize;

    /// Describes the location of the memory, for people.
    fn describe(&self) -> String;

    /// Describes a tensor whose elements begin at a byte of the memory, for people.
    fn describe_tensor(&self, tensor: &TensorText<'_>) -> String {
        let _ = tensor;
        self.describe()
    }
}

/// A tensor in memory of a device, as texts tell of it.
#[derive(Clone, Copy)]
pub struct TensorText<'a> {
    /// The type of the elements.
    pub dtype: &'a dyn fmt::Display,
    /// The extents.
    pub shape: &'a dyn fmt::Display,
    /// The byte of the memory at which the elements begin.
    pub begin: usize,
}

/// A counted handle of memory of a device.
pub type DeviceMemory = Arc<dyn DeviceBuffer>;

impl fmt::Debug for dyn DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// A part of a device's memory, which holds it. Clones share the memory.
#[derive(Clone, Debug)]
pub struct DeviceSlice {
    memory: DeviceMemory,
    // Invariant: lies in the memory.
    range: Range<usize>,
}

impl DeviceSlice {
    /// Returns a part of memory; `None` if it does not lie in it.
    pub fn new(memory: DeviceMemory, range: Range<usize>) -> Option<DeviceSlice> {
        let is_within = range.start <= range.end && range.end <= memory.len_bytes();
        is_within.then_some(DeviceSlice { memory, range })
    }

    /// Returns the memory.
    pub fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// Returns the memory as the type that its device makes; `None` if it is of another device.
    pub fn downcast<T: DeviceBuffer>(&self) -> Option<&T> {
        let memory: &dyn Any = &*self.memory;
        memory.downcast_ref()
    }

    /// Returns the part's bytes in the memory.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        self.range.len()
    }

    /// Returns the device that the memory belongs to.
    pub fn device(&self) -> DeviceId {
        self.memory.device()
    }
}

/// The source of a copy, held until the copy is over.
#[derive(Debug)]
pub enum Source {
    /// A buffer of the host.
    Host(OwnedReading),
    /// Memory of a device.
    Device(DeviceSlice),
}

/// The target of a copy, held until the copy is over.
#[derive(Debug)]
pub enum Target {
    /// A buffer of the host.
    Host(OwnedWriting),
    /// Memory of a device.
    Device(DeviceSlice),
}

impl Source {
    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        match self {
            Source::Host(reading) => reading.len(),
            Source::Device(slice) => slice.len_bytes(),
        }
    }

    /// Compares the length with that of the target of a copy.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the lengths differ.
    pub fn expect_len_of(&self, to: &Target) -> Result<(), Error> {
        let (n_from, n_to) = (self.len_bytes(), to.len_bytes());
        if n_from == n_to {
            return Ok(());
        }
        let message = format!("a copy of {n_from} bytes was given a target of {n_to}");
        Err(Error::invalid_argument(message))
    }
}

impl Target {
    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        match self {
            Target::Host(writing) => writing.len(),
            Target::Device(slice) => slice.len_bytes(),
        }
    }
}
