//! [`SocketTransport`]: tasks in processes of their own, which talk over Unix and TCP sockets.
//!
//! A transport has two endpoints of [`tfrt_wire`]: one listens at the task's address and answers, one dials its peers and
//! asks. So of two tasks that ask each other each dials once, and a task can ask itself. Endpoints are named by the
//! address, as all tasks write it: `unix:/run/w1`, and `client of unix:/run/w1`. With certificates the name of the task
//! stands behind, ` as /job:worker/task:1`, and is the certificate's; who is dialled must be the task that was introduced,
//! and who says to listen where another task was introduced is refused.
//!
//! Requests of a peer that are not answered yet are bounded by its [`Quotas`], and peers take turns: one that asks
//! much waits for itself.
//!
//! Requests run at most once by the sessions of `tfrt_wire`; one that can't have run is tried again here as often as its
//! caller says. A value is a request that names its buffers: those of more than 4 KiB come by streams of their own,
//! straight into the memory that they stay in. Values for one key are handed over in the order of their requests.
//! A cancellation is a request of its own, so that it arrives behind the request that it cancels.
//!
//! Of a peer that is silent all that waits goes on waiting for the lease (10 s), in which it is
//! [`Suspect`](Phase::Suspect); then it is lost.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::ToSocketAddrs;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tfrt_async::{AsyncValue, Chain, ClusterTask, Error};
use tfrt_host::HostContext;
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer, OwnedReading};
use tfrt_wire::endpoint::{Admission, Config, PeerId};
use tfrt_wire::event::{self, CallId, Event};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::Open;
use tfrt_wire::payload::Landing;
use tfrt_wire::proof::Secret;
use tfrt_wire::socket::{self, Sockets};

use inbox::Inbox;

use super::pending::{Asked, Outcome, PendingCall, Stops};
use super::{Bounds, Caller, Cancel, Handler, HearsRefusals, PeerState, Phase, Transport};
use crate::cluster::Address;
use crate::ids::{Incarnation, TaskHandle};
use crate::message::{Key, Payload, Reply, Request};
use crate::security::{Access, Quotas};

mod client;
mod codec;
mod inbox;
#[doc(hidden)]
pub mod outside;
mod server;

/// The time for which a call waits for a task that does not listen yet, whatever its retries.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two tries after that.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// The longest time between two attempts to dial.
const MAX_REDIAL: Duration = Duration::from_millis(200);
/// The most bytes of a buffer that rides in a request.
const INLINE_BYTES: usize = 4 << 10;
/// The codec of buffers that come by streams.
const CODEC: &str = "bytes";
/// The text before the address in the name of an endpoint that asks.
const CLIENT: &str = "client of ";
/// The text before the task in the name of an endpoint with a certificate.
const AS: &str = " as ";
/// The most bytes of a request, or of a reply.
const MAX_MESSAGE_BYTES: u32 = 64 << 20;

/// A transport over sockets. Dropping it closes it.
pub struct SocketTransport {
    inner: Arc<Inner>,
}

struct Inner {
    caller: Caller,
    host: HostContext,
    state: Mutex<State>,
    inbox: Mutex<Inbox>,
}

/// Everything that is locked together. While it is locked, sockets may be used, and nothing of others is called.
#[derive(Default)]
struct State {
    /// The endpoint that asks; none once it is closed.
    client: Option<Sockets>,
    /// The endpoint that answers.
    server: Option<Sockets>,
    handler: Option<Arc<dyn Handler>>,
    is_closed: bool,
    quotas: Quotas,
    /// The function that is told why connections were refused.
    refused: Option<Arc<HearsRefusals>>,

    peers: HashMap<TaskHandle, Peer>,
    links: HashMap<PeerId, Link>,
    n_calls: u64,
    calls: HashMap<u64, Call>,
    /// The calls of requests by their names in `client`.
    requests: HashMap<(PeerId, u64), u64>,
    /// The calls of streams.
    streams: HashMap<(PeerId, u64), u64>,
    /// Calls that were given up, and why, until their peers are told: what is given up together is told together.
    cancels: Vec<(TaskHandle, u64, Error)>,

    callers: HashMap<PeerId, Caller>,
    running: HashMap<(PeerId, u64), (CallId, Cancel)>,
    incoming: BTreeMap<(PeerId, u64), Incoming>,
    unanswered: HashMap<PeerId, Unanswered>,
}

/// The bytes of what a client has asked and was not answered yet.
#[derive(Default)]
struct Unanswered {
    by_call: HashMap<CallId, usize>,
    /// Invariant: the sum of the others.
    len_bytes: usize,
}

/// A peer as it was introduced.
struct Peer {
    task: ClusterTask,
    address: Address,
    /// Where it is dialled, or why it can't be.
    link: Result<PeerId, Error>,
    incarnation: Option<Incarnation>,
    phase: Phase,
}

impl Peer {
    /// Returns whether it is dialled as this one.
    fn is_at(&self, link: PeerId) -> bool {
        self.link.as_ref().is_ok_and(|own| *own == link)
    }
}

/// An address that is dialled.
struct Link {
    address: Address,
    incarnation: Option<Incarnation>,
}

/// A call that waits, and how long it is tried.
struct Call {
    pending: PendingCall,
    asked: Asked,
    deadline: Option<Instant>,
    patient_until: Instant,
    retries: u32,
    may_wait: bool,
}

/// A value that is being received.
struct Incoming {
    call: CallId,
    key: Key,
    /// Those that are there, and the lengths of those that are to come.
    buffers: Vec<Result<HostBuffer, u64>>,
}

enum Work {
    Call {
        from: Caller,
        ticket: Ticket,
        request: Box<Request>,
        bounds: Bounds,
    },
    Value {
        from: Caller,
        ticket: Ticket,
        key: Key,
        payload: Payload,
    },
    Cancel(PeerId, Cancel, Error),
}

impl Work {
    /// Returns whose it is.
    fn peer(&self) -> PeerId {
        match self {
            Work::Call { ticket, .. } | Work::Value { ticket, .. } => ticket.peer,
            Work::Cancel(peer, ..) => *peer,
        }
    }
}

/// The names by which a request is answered.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    peer: PeerId,
    number: u64,
    call: CallId,
}

impl SocketTransport {
    /// Listens at an address, by which others know the task: of two that mean the same place, they use this one. With 0 as
    /// port it listens at a free one. Without a secret that all tasks share only this machine is let in.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the address means no place, `PermissionDenied` if others than this machine could reach it and
    /// there is no secret, `Unavailable` if the system refuses it.
    pub fn listen(
        host: &HostContext,
        address: &Address,
        secret: Option<Secret>,
    ) -> Result<SocketTransport, Error> {
        let access = secret.map_or(Access::ThisMachine, Access::Secret);
        SocketTransport::listen_with(host, address, None, &access)
    }

    /// Listens as [`listen`](Self::listen), with any way in which tasks prove who they are; at another place than the
    /// address by which others know the task, if one is given.
    ///
    /// # Errors
    ///
    /// As there; `PermissionDenied` says which three ways there are.
    pub fn listen_with(
        host: &HostContext,
        address: &Address,
        at: Option<&Address>,
        access: &Access,
    ) -> Result<SocketTransport, Error> {
        let address = match at {
            None => with_free_port(address)?,
            Some(_) => address.clone(),
        };
        let place = self::place(at.unwrap_or(&address))?;
        let incarnation = Incarnation(socket::new_incarnation()?);
        let config = |name: String, limits: Limits| Config {
            name,
            incarnation: incarnation.0,
            secret: match access {
                Access::Secret(secret) => Some(secret.clone()),
                _ => None,
            },
            has_certificates: false,
            accepts_unknown: true,
            limits,
        };
        let limits = Limits {
            join_timeout: PATIENCE,
            max_redial: MAX_REDIAL,
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_unacknowledged_bytes: 128 << 20,
            max_requests: 1 << 16,
            ..Limits::default()
        };
        let task = access.task()?;
        let inner = Arc::new(Inner {
            caller: Caller {
                address: address.clone(),
                incarnation,
                task: task.clone(),
            },
            host: host.clone(),
            state: Mutex::default(),
            inbox: Mutex::default(),
        });
        let admission = Arc::new(Memory(host.clone()));
        let transport = SocketTransport { inner };
        let weak = Arc::downgrade(&transport.inner);
        let name = endpoint_name(&address, task.as_ref());
        let client = access.start(
            config(format!("{CLIENT}{name}"), limits.clone()),
            admission.clone(),
            Arc::new(Events {
                inner: weak.clone(),
                tell: Inner::told_as_client,
            }),
        )?;
        let server = access.start(
            config(name, limits),
            admission,
            Arc::new(Events {
                inner: weak,
                tell: Inner::told_as_server,
            }),
        )?;
        let mut state = transport.inner.lock();
        state.client = Some(client);
        let server = state.server.insert(server);
        let listens = server.listen(&place);
        drop(state);
        listens?;
        Ok(transport)
    }
}

/// Returns the name of the endpoint of a task at an address.
fn endpoint_name(address: &Address, task: Option<&ClusterTask>) -> String {
    match task {
        Some(task) => format!("{address}{AS}{task}"),
        None => address.to_string(),
    }
}

/// Hands events to a transport, if it is still there.
struct Events {
    inner: Weak<Inner>,
    tell: fn(&Arc<Inner>, PeerId, Event),
}

impl socket::Handler for Events {
    fn event(&self, peer: PeerId, event: Event) {
        if let Some(inner) = self.inner.upgrade() {
            (self.tell)(&inner, peer, event);
        }
    }

    fn refused(&self, why: &str) {
        let inner = self.inner.upgrade();
        let tell = inner.and_then(|inner| inner.lock().refused.clone());
        if let Some(tell) = tell {
            tell(why);
        }
    }
}

/// Returns an address with a port that is free now, if its port is 0: the name of an endpoint has it.
///
/// # Errors
///
/// `Unavailable` if the system gives none.
pub(crate) fn with_free_port(address: &Address) -> Result<Address, Error> {
    let (Address::Tcp { host, port: 0 }, socket::Address::Tcp(at)) = (address, place(address)?)
    else {
        return Ok(address.clone());
    };
    let free = std::net::TcpListener::bind(at).and_then(|found| found.local_addr());
    let free =
        free.map_err(|error| Error::unavailable(format!("can't listen at {address}: {error}")))?;
    Ok(Address::Tcp {
        host: host.clone(),
        port: free.port(),
    })
}

/// Returns where an address is.
pub(crate) fn place(address: &Address) -> Result<socket::Address, Error> {
    let (host, port) = match address {
        Address::Unix(path) => return Ok(socket::Address::Unix(path.into())),
        Address::Tcp { host, port } => (host, *port),
    };
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let found = (bare.unwrap_or(host), port).to_socket_addrs();
    let found = found.map(|mut all| all.next());
    match found {
        Ok(Some(at)) => Ok(socket::Address::Tcp(at)),
        Ok(None) => Err(Error::invalid_argument(format!(
            "expected a host with an address, found {address}, which has none"
        ))),
        Err(error) => Err(Error::invalid_argument(format!(
            "expected a host with an address, found {address}: {error}"
        ))),
    }
}

/// Memory for buffers that come by streams: the host's.
struct Memory(HostContext);

impl Admission for Memory {
    fn admit(&self, _: &str, _: u64, open: &Open) -> Result<Box<dyn Landing>, Error> {
        if open.codec != CODEC {
            let found = open.codec.escape_debug();
            let message = format!("expected the codec '{CODEC}', found '{found}'");
            return Err(Error::invalid_argument(message));
        }
        let len = usize::try_from(open.total_bytes).ok();
        let allocator = self.0.allocator();
        let buffer = len.and_then(|len| HostBuffer::unspecified(allocator, len, BUFFER_ALIGNMENT));
        let buffer = buffer.ok_or_else(|| {
            let len = open.total_bytes;
            Error::resource_exhausted(format!("there is no memory for a buffer of {len} bytes"))
        })?;
        Ok(Box::new(Landed(buffer)))
    }
}

struct Landed(HostBuffer);

impl Landing for Landed {
    fn bytes(&mut self) -> &mut [u8] {
        self.0.as_bytes_mut().unwrap_or_default()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

/// A buffer that is sent from where it is.
struct Sent(OwnedReading);

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.0.deref()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_closed, true) {
            return;
        }
        let sockets = (state.server.take(), state.client.take());
        let handler = state.handler.take();
        let refused = state.refused.take();
        let calls = std::mem::take(&mut state.calls);
        let running = std::mem::take(&mut state.running);
        state.incoming.clear();
        state.unanswered.clear();
        drop(state);
        let works = self.inbox().clear();
        drop((handler, refused, works));
        // It waits for their threads, which lock the state.
        drop(sockets);
        for call in calls.into_values() {
            call.pending
                .end(Err(Error::cancelled("this task has ended")));
        }
        for (_, cancel) in running.into_values() {
            cancel.cancel(Error::cancelled("this task has ended"));
        }
    }
}

impl Transport for SocketTransport {
    fn address(&self) -> &Address {
        &self.inner.caller.address
    }

    fn incarnation(&self) -> Incarnation {
        self.inner.caller.incarnation
    }

    fn introduce(&self, peer: TaskHandle, task: &ClusterTask, address: &Address) {
        // It may ask others, so it is asked before the state is locked.
        let place = place(address);
        let mut state = self.inner.lock();
        let as_task = self.inner.caller.task.is_some().then_some(task);
        let link = place.and_then(|place| state.dial(address, as_task, place));
        let client = state.client.as_ref().zip(link.as_ref().ok());
        let met = client.filter(|(client, link)| {
            let found = client.state(**link);
            matches!(found, event::PeerState::Live | event::PeerState::Suspect)
        });
        let incarnation = met.and_then(|(client, link)| client.incarnation(*link));
        let known = Peer {
            task: task.clone(),
            address: address.clone(),
            link,
            incarnation: incarnation.map(Incarnation),
            phase: Phase::Unknown,
        };
        state.peers.insert(peer, known);
    }

    fn forget(&self, peer: TaskHandle) {
        let mut state = self.inner.lock();
        let forgotten = state.peers.remove(&peer);
        let calls = state.take_calls_to(peer);
        if let Some(Ok(link)) = forgotten.map(|peer| peer.link) {
            state.hang_up(link);
        }
        drop(state);
        for call in calls {
            call.pending
                .end(Err(Error::cancelled("the task was forgotten")));
        }
    }

    fn call(&self, peer: TaskHandle, request: Request, bounds: Bounds) -> AsyncValue<Reply> {
        self.inner.ask(peer, Asked::Call(request), bounds)
    }

    fn send(
        &self,
        peer: TaskHandle,
        key: Key,
        value: Payload,
        bounds: Bounds,
    ) -> AsyncValue<Chain> {
        let reply = self.inner.ask(peer, Asked::Value(key, value), bounds);
        reply.map(|_| Chain)
    }

    fn serve(&self, handler: Arc<dyn Handler>) {
        self.inner.lock().handler = Some(handler);
        self.inner.begin_to_empty();
    }

    fn peers(&self) -> Vec<PeerState> {
        let state = self.inner.lock();
        let peers = state.peers.iter().map(|(handle, peer)| {
            let link = state.client.as_ref().zip(peer.link.as_ref().ok());
            let is_live =
                link.is_some_and(|(client, link)| client.state(*link) == event::PeerState::Live);
            PeerState {
                handle: *handle,
                task: peer.task.clone(),
                address: peer.address.clone(),
                incarnation: peer.incarnation,
                phase: match peer.phase {
                    Phase::Live if !is_live => Phase::Suspect,
                    phase => phase,
                },
                why: match &peer.link {
                    Ok(link) => state.client.as_ref().map(|client| client.why(*link)),
                    Err(error) => Some(error.message().to_owned()),
                }
                .unwrap_or_default(),
            }
        });
        peers.collect()
    }

    fn set_quotas(&self, quotas: &Quotas) {
        self.inner.lock().quotas = quotas.clone();
    }

    fn on_refused(&self, tell: Arc<HearsRefusals>) {
        self.inner.lock().refused = Some(tell);
    }

    fn is_own_thread(&self) -> bool {
        socket::is_lasting()
    }

    fn close(&self) {
        self.inner.close();
    }
}

impl Drop for SocketTransport {
    fn drop(&mut self) {
        self.inner.close();
    }
}

impl fmt::Debug for SocketTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SocketTransport({})", self.address())
    }
}
