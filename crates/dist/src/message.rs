//! Messages between tasks: [`Request`]s, [`Reply`]s and [`Payload`]s, as plain data that any transport can encode.

use std::fmt;
use std::time::Duration;

use tfrt_async::{ClusterTask, Error, Heap, Value};
use tfrt_host::DeviceKind;
use tfrt_host::memory::HostBuffer;

use crate::cluster::Cluster;
use crate::ids::{ContextId, ObjectId};

/// A request of one task to another.
#[derive(Clone, Debug)]
pub enum Request {
    /// Asks for the devices of a task.
    GetDevices,
    /// Asks for the time by the clock of a task.
    ReadClock,
    /// Tells the lead of a cluster that a task is there, and by the sender's address where.
    Join {
        /// The task.
        task: ClusterTask,
        /// How many tasks it has heard that there are.
        n_tasks: u32,
    },
    /// Has a task measure its connection to another.
    Probe {
        /// The context.
        context: ContextId,
        /// The other task.
        to: ClusterTask,
        /// The bytes to send there for the bandwidth.
        n_bytes: u64,
    },
    /// Makes a context.
    CreateContext(Box<CreateContext>),
    /// Ends a context.
    CloseContext {
        /// The context.
        context: ContextId,
    },
    /// Tells a task the ready chains of others.
    SendReadyChains {
        /// The context.
        context: ContextId,
        /// The chains, each on a device of its task.
        ready_chains: Vec<ObjectId>,
    },
    /// Keeps a context from being collected.
    KeepAlive {
        /// The context.
        context: ContextId,
    },
    /// Registers a program under the name of a function of it.
    RegisterFunction {
        /// The context.
        context: ContextId,
        /// The name of the function.
        name: String,
        /// The text of the program.
        program: String,
        /// Whether a compiler pass goes over it first, which says where results are.
        need_compilation: bool,
    },
    /// Executes a registered function.
    RemoteExecute {
        /// The context.
        context: ContextId,
        /// The name of the function.
        name: String,
        /// The arguments.
        inputs: Vec<ObjectId>,
        /// Names for the results.
        outputs: Vec<RequestedOutput>,
    },
    /// Executes an operation by a handler.
    RemoteExecuteOp(Box<ExecuteOp>),
    /// Deletes objects.
    DeleteRemoteObjects {
        /// The context.
        context: ContextId,
        /// The objects.
        objects: Vec<ObjectId>,
    },
}

/// The contents of [`Request::CreateContext`].
#[derive(Clone, Debug)]
pub struct CreateContext {
    /// The number of the context.
    pub context: ContextId,
    /// The tasks and groups.
    pub cluster: Cluster,
    /// The task that the receiver is.
    pub task: ClusterTask,
    /// All devices of all tasks.
    pub devices: Vec<DeviceInfo>,
    /// Whether each task makes the context by itself, and this one leads.
    pub is_multi_client: bool,
}

/// The contents of [`Request::RemoteExecuteOp`].
#[derive(Clone, Debug)]
pub struct ExecuteOp {
    /// The context.
    pub context: ContextId,
    /// The name of the handler: that of a device.
    pub handler: String,
    /// The name of the operation.
    pub op: String,
    /// The chain before the operation.
    pub in_chain: ObjectId,
    /// A name for the chain behind it.
    pub out_chain: ObjectId,
    /// The operands.
    pub inputs: Vec<ObjectId>,
    /// Names for the results.
    pub outputs: Vec<RequestedOutput>,
    /// The attributes, all of them 64-bit integers.
    pub attributes: Vec<IntegerAttribute>,
}

/// An attribute of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerAttribute {
    /// The name.
    pub name: String,
    /// The elements; of a scalar there is one.
    pub values: Vec<i64>,
    /// Whether it is an array.
    pub is_array: bool,
}

/// A name for a result.
#[derive(Clone, Debug)]
pub struct RequestedOutput {
    /// The name.
    pub id: ObjectId,
    /// Whether the reply tells type and shape.
    pub need_metadata: bool,
}

/// A device of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name: in the task as `CPU:0`, in a cluster as `/job:worker/task:1/device:CPU:0`.
    pub name: String,
    /// The kind: `cpu`.
    pub kind: DeviceKind,
}

/// The metadata of a tensor as bytes, or why there is no tensor.
pub type Metadata = Result<Vec<u8>, Error>;

/// A reply to a [`Request`], of the kind that the request asks for.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It was done, and there is nothing to tell.
    Done,
    /// The devices of a task.
    Devices(Vec<DeviceInfo>),
    /// The ready chain of a new context.
    ContextCreated(ObjectId),
    /// The devices that the results of a registered function are on.
    FunctionRegistered(Vec<String>),
    /// The metadata of the results that it was asked for.
    Executed(Vec<Metadata>),
    /// The times that a connection took.
    Probed(Probed),
    /// The nanoseconds since the beginning of 1970, by the clock of a task.
    Clock(u64),
}

/// The times that a connection between two tasks takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The time of a request and its answer: the middle one of several.
    pub round_trip: Duration,
    /// The time of the bytes that were sent: the shortest of several.
    pub sending: Duration,
    /// How many nanoseconds the clock of the receiver is ahead, by the fastest of several round trips, half of which it may
    /// be wrong by at most.
    pub clock_offset_ns: i64,
}

impl Value for Reply {
    const NAME: &'static str = "!tfrt_dist.reply";
    type Storage = Heap;
}

impl Request {
    /// Returns the name of the request, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Request::GetDevices => "GetDevices",
            Request::ReadClock => "ReadClock",
            Request::Join { .. } => "Join",
            Request::Probe { .. } => "Probe",
            Request::CreateContext(_) => "CreateContext",
            Request::CloseContext { .. } => "CloseContext",
            Request::SendReadyChains { .. } => "SendReadyChains",
            Request::KeepAlive { .. } => "KeepAlive",
            Request::RegisterFunction { .. } => "RegisterFunction",
            Request::RemoteExecute { .. } => "RemoteExecute",
            Request::RemoteExecuteOp(_) => "RemoteExecuteOp",
            Request::DeleteRemoteObjects { .. } => "DeleteRemoteObjects",
        }
    }

    /// Returns whether doing it twice is the same as doing it once, so that it may be tried again on another start of a
    /// process.
    pub fn is_idempotent(&self) -> bool {
        matches!(
            self,
            Request::GetDevices
                | Request::ReadClock
                | Request::Join { .. }
                | Request::Probe { .. }
                | Request::KeepAlive { .. }
                | Request::CloseContext { .. }
                | Request::DeleteRemoteObjects { .. }
                | Request::RegisterFunction { .. }
        )
    }
}

/// Bytes that are sent: a list of buffers, which clones share.
#[derive(Clone, Debug, Default)]
pub struct Payload(pub Vec<HostBuffer>);

impl Payload {
    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        self.0.iter().map(HostBuffer::len_bytes).sum()
    }
}

impl Value for Payload {
    const NAME: &'static str = "!tfrt_dist.payload";
    type Storage = Heap;
}

/// The place of a value that is sent: a name within a context, at which the receiver waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The context.
    pub context: ContextId,
    /// The name.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' of context {}",
            self.name.escape_debug(),
            self.context
        )
    }
}

/// Returns the errors of several calls as one: the only one as it is, several as a list.
///
/// # Examples
///
/// ```
/// use tfrt_async::Error;
/// let two = [Error::unknown("a"), Error::not_found("b")];
/// let error = tfrt_dist::message::merged(two).unwrap();
/// assert_eq!(error.message(), "Found 2 errors:\n  (1) Unknown: a\n  (2) NotFound: b");
/// ```
pub fn merged(errors: impl IntoIterator<Item = Error>) -> Option<Error> {
    let mut errors: Vec<Error> = errors.into_iter().collect();
    if errors.len() < 2 {
        return errors.pop();
    }
    let mut message = format!("Found {} errors:", errors.len());
    for (index, error) in errors.iter().enumerate() {
        let (code, text) = (error.code(), error.message());
        message.push_str(&format!("\n  ({}) {code}: {text}", index + 1));
        if let Some(task) = error.task() {
            message.push_str(&format!(" (from task: {task})"));
        }
    }
    Some(Error::new(errors[0].code(), message))
}
