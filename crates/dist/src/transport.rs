//! [`Transport`]: the contract of whatever carries messages between tasks.
//!
//! A transport belongs to one task. It listens at an address, knows peers by the [`TaskHandle`]s that it was
//! [introduced](Transport::introduce) to them by, and hands what arrives to a [`Handler`]. Neither sockets nor encodings
//! show here. [`conformance::suite`](crate::conformance::suite) tries what is promised; [`local`] is the transport
//! within a process, `socket` that over Unix and TCP sockets.
//!
//! # Promises
//!
//! * Whoever calls is answered: by the reply, or by an error once the deadline has passed, the call is cancelled or the
//!   peer is lost.
//! * A request reaches the handler at most once, also if the network delivers it twice ([`once`]).
//! * Values from one task for one key arrive in the order in which they were sent, those for different keys and requests
//!   in any order.
//! * A request whose caller has given up reaches the handler all the same, as one that is cancelled: others may wait for
//!   what it was to make.
//! * A request for an earlier start of a process is refused with `FailedPrecondition`, and touches nothing.
//! * The error of a peer that is lost names its task. It is of code `Unavailable` if the request can't have run,
//!   `Unknown` if it may have.
//! * Answers arrive on threads of the transport. Whoever waits leaves them to the host's queue before anything of a program
//!   runs, but for what is mostly short, on threads that [say so](Transport::is_own_thread).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tfrt_async::queue::Task;
use tfrt_async::{AsyncValue, Chain, ClusterTask, Error};

use crate::cluster::Address;
use crate::ids::{Incarnation, TaskHandle};
use crate::message::{Key, Payload, Reply, Request};
use crate::security::Quotas;

pub mod local;
pub mod once;
mod pending;
#[cfg(target_os = "linux")]
pub mod socket;

/// Somebody who hears why connections were refused.
pub type HearsRefusals = dyn Fn(&str) + Send + Sync;

/// A carrier of messages between one task and others.
pub trait Transport: Send + Sync + 'static {
    /// Returns the address at which others reach this task.
    fn address(&self) -> &Address;

    /// Returns the bits that tell this start of the process from others.
    fn incarnation(&self) -> Incarnation;

    /// Makes a peer known by a handle; done again it begins anew with whoever is at the address now.
    fn introduce(&self, peer: TaskHandle, task: &ClusterTask, address: &Address);

    /// Forgets a peer. What is awaited of it fails.
    fn forget(&self, peer: TaskHandle);

    /// Asks a peer, whose reply is to come.
    fn call(&self, peer: TaskHandle, request: Request, bounds: Bounds) -> AsyncValue<Reply>;

    /// Sends a value to a peer; the chain says that its handler has taken it.
    fn send(&self, peer: TaskHandle, key: Key, value: Payload, bounds: Bounds)
    -> AsyncValue<Chain>;

    /// Begins to hand what arrives to a handler. What has arrived before waits for it.
    fn serve(&self, handler: Arc<dyn Handler>);

    /// Returns all peers.
    fn peers(&self) -> Vec<PeerState>;

    /// Sets how much of each peer may be on its way, where a transport takes more than one message of it at a time.
    fn set_quotas(&self, quotas: &Quotas) {
        let _ = quotas;
    }

    /// Returns for how long a task that was found lost may come back as the one that it was: until then what it has made
    /// here is kept. Zero where that time is over when a task is found lost.
    fn lease(&self) -> Duration {
        Duration::ZERO
    }

    /// Forgets what is kept for a client, which is lost for good.
    fn forget_client(&self, client: Incarnation) {
        let _ = client;
    }

    /// Has somebody hear why connections are refused of which it is not known whose they are, such as those with a wrong
    /// certificate or secret. It is called on a thread of the transport, and should return soon.
    fn on_refused(&self, tell: Arc<HearsRefusals>) {
        drop(tell);
    }

    /// Returns whether this thread is one of the transport's own, and at a point at which work may be done that is mostly
    /// short: if it is not, another takes its place.
    fn is_own_thread(&self) -> bool {
        false
    }

    /// Ends: others find this task lost, and what is awaited of them fails.
    fn close(&self);
}

/// A receiver of what arrives.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request.
    fn call(&self, from: &Caller, request: Request, bounds: Bounds) -> AsyncValue<Reply>;

    /// Returns whether a request may be answered on the thread of the transport that it came by: that is mostly short. It
    /// is asked once for a request.
    fn is_short(&self, request: &Request) -> bool {
        let _ = request;
        false
    }

    /// Returns whether a value may be handed over on the thread of the transport that it came by: nothing of a program runs
    /// where it is taken, that takes not long, and its sender is in no hurry to hear of it.
    fn is_quick(&self, key: &Key, value: &Payload) -> bool {
        let _ = (key, value);
        false
    }

    /// Takes a value. An error refuses it. Work that is returned is to be run on this thread, when others may be handed over.
    fn value(&self, from: &Caller, key: Key, value: Payload) -> Result<Option<Task>, Error>;

    /// Hears that a task is lost, which had called before or is a peer.
    fn lost(&self, peer: &Caller, why: &Error);
}

/// The sender of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Where it listens.
    pub address: Address,
    /// The start of its process.
    pub incarnation: Incarnation,
    /// The task that it is, if a certificate proves that.
    pub task: Option<ClusterTask>,
}

/// A peer of a transport.
#[derive(Clone, Debug)]
pub struct PeerState {
    /// The handle by which it was introduced.
    pub handle: TaskHandle,
    /// The name of the task.
    pub task: ClusterTask,
    /// Where it listens.
    pub address: Address,
    /// The start of its process, if it has been reached.
    pub incarnation: Option<Incarnation>,
    /// How it is.
    pub phase: Phase,
    /// Why it is not connected, or was not the last time, where the transport knows.
    pub why: String,
}

/// The phases of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nobody has asked for it yet.
    Unknown,
    /// It was asked, and has not answered.
    Connecting,
    /// It answers.
    Live,
    /// It has missed a heartbeat.
    Suspect,
    /// It has missed several, or its connection is broken, or it is another start of the process.
    Lost,
}

/// The limits of a call.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// When the caller gives up, by the clock of its host; a transport sends the time that is left.
    pub deadline: Option<Instant>,
    /// The switch by which the caller cancels the call.
    pub cancel: Option<Cancel>,
    /// How often a request that did not reach the peer is tried again.
    pub max_retries: u32,
    /// Whether it may wait for a millisecond for what else is sent to the peer, to go together.
    pub may_wait: bool,
}

/// A switch that cancels a call, and all that come of it. Clones are the same switch.
///
/// # Examples
///
/// ```
/// use tfrt_async::Error;
/// use tfrt_dist::transport::Cancel;
///
/// let cancel = Cancel::new();
/// let hook = cancel.on_cancel(|reason| println!("stopped: {reason}"));
/// cancel.cancel(Error::cancelled("enough"));
/// assert_eq!(cancel.reason().unwrap().message(), "enough");
/// # drop(hook);
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<CancelState>>);

#[derive(Default)]
struct CancelState {
    // Invariant: set once.
    reason: Option<Error>,
    n_hooks: u64,
    hooks: Vec<(u64, CancelWork)>,
}

type CancelWork = Box<dyn FnOnce(&Error) + Send>;

/// Something that runs when a call is cancelled, unless this is dropped before.
#[must_use = "what was to run does not if this is dropped"]
pub struct CancelHook(Cancel, u64);

impl Cancel {
    /// Makes a switch.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Cancels with a reason; the first one is final.
    pub fn cancel(&self, reason: Error) {
        let hooks = {
            let mut state = self.lock();
            if state.reason.is_some() {
                return;
            }
            state.reason = Some(reason.clone());
            std::mem::take(&mut state.hooks)
        };
        for (_, hook) in hooks {
            hook(&reason);
        }
    }

    /// Returns the reason, if it was cancelled.
    pub fn reason(&self) -> Option<Error> {
        self.lock().reason.clone()
    }

    /// Runs `work` with the reason when it is cancelled: now if it is, else on the thread that cancels.
    pub fn on_cancel(&self, work: impl FnOnce(&Error) + Send + 'static) -> CancelHook {
        let mut state = self.lock();
        if let Some(reason) = state.reason.clone() {
            drop(state);
            work(&reason);
            return CancelHook(Cancel::new(), 0);
        }
        state.n_hooks += 1;
        let number = state.n_hooks;
        state.hooks.push((number, Box::new(work)));
        drop(state);
        CancelHook(self.clone(), number)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CancelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelHook {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let index = state.hooks.iter().position(|(number, _)| *number == self.1);
        let work = index.map(|index| state.hooks.swap_remove(index));
        drop(state);
        // Dropped without the lock: a promise in it may run anything.
        drop(work);
    }
}

impl fmt::Debug for CancelHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelHook").finish_non_exhaustive()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.reason()).finish()
    }
}

/// Returns the error of a peer that is lost before a request can have run there.
pub fn lost(task: &ClusterTask) -> Error {
    Error::unavailable(format!("task {task} is lost")).with_task(task.clone())
}

/// Returns the error of a peer that is lost after a request was sent.
pub fn lost_after(task: &ClusterTask, request: &str) -> Error {
    Error::unknown(format!(
        "task {task} is lost: the {request} that it was sent may have run"
    ))
    .with_task(task.clone())
}

/// Returns the error of a message for an earlier start of a process.
pub fn stale(task: &ClusterTask) -> Error {
    Error::failed_precondition(format!("stale incarnation: task {task} was started anew"))
        .with_task(task.clone())
}
