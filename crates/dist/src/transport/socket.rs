//! [`SocketTransport`]: tasks in processes of their own, which talk over Unix and TCP sockets.
//!
//! A transport has two endpoints of [`tfrt_wire`]: one listens at the task's address and answers, one dials its peers and
//! asks. So of two tasks that ask each other each dials once, and a task can ask itself. Endpoints are named by the
//! address, as all tasks write it: `unix:/run/w1`, and `client of unix:/run/w1`.
//!
//! Requests run at most once by the sessions of `tfrt_wire`; one that can't have run is tried again here as often as its
//! caller says. A value is a request that names its buffers: those of more than 4 KiB come by streams of their own,
//! straight into the memory that they stay in. Values for one key are handed over in the order of their requests.
//! What a caller has given up is a request, too, so that it comes behind what it cancels.
//!
//! Of a peer that is silent all that waits goes on waiting for the lease (10 s), in which it is
//! [`Suspect`](Phase::Suspect); then it is lost.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::net::ToSocketAddrs;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tfrt_async::queue::{Task, TimerHandle};
use tfrt_async::{AsyncValue, Chain, ClusterTask, Error, ErrorCode, Promise};
use tfrt_host::HostContext;
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer, OwnedReading};
use tfrt_wire::endpoint::{Admission, Config, PeerId, bytes};
use tfrt_wire::event::{self, CallId, Event};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::Open;
use tfrt_wire::payload::{self, Landing};
use tfrt_wire::proof::Secret;
use tfrt_wire::socket::{self, Sockets};

use super::{
    Bounds, Caller, Cancel, CancelHook, Handler, PeerState, Phase, Transport, lost, lost_after,
    stale,
};
use crate::cluster::Address;
use crate::ids::{Incarnation, TaskHandle};
use crate::message::{Key, Payload, Reply, Request};
use codec::{Part, Said};

mod codec;

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
/// What stands before the address in the name of an endpoint that asks.
const CLIENT: &str = "client of ";

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
    /// What asks; none once it is closed.
    client: Option<Sockets>,
    /// What answers.
    server: Option<Sockets>,
    handler: Option<Arc<dyn Handler>>,
    is_closed: bool,

    peers: HashMap<TaskHandle, Peer>,
    links: HashMap<PeerId, Link>,
    n_calls: u64,
    calls: HashMap<u64, PendingCall>,
    /// The calls of requests by their names in `client`.
    requests: HashMap<(PeerId, u64), u64>,
    /// The calls of streams.
    streams: HashMap<(PeerId, u64), u64>,

    callers: HashMap<PeerId, Caller>,
    running: HashMap<(PeerId, u64), (CallId, Cancel)>,
    incoming: BTreeMap<(PeerId, u64), Incoming>,
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

/// An address that is dialled.
struct Link {
    address: Address,
    incarnation: Option<Incarnation>,
}

struct PendingCall {
    promise: Promise<Reply>,
    peer: TaskHandle,
    task: ClusterTask,
    asked: Asked,
    deadline: Option<Instant>,
    patient_until: Instant,
    retries: u32,
    was_sent: bool,
    timer: Option<TimerHandle>,
    hook: Option<CancelHook>,
}

#[derive(Clone)]
enum Asked {
    Call(Request),
    Value(Key, Payload),
}

/// A value that is being received.
struct Incoming {
    call: CallId,
    key: Key,
    buffers: Vec<Option<HostBuffer>>,
}

type Outcome = Result<Reply, Error>;

/// Work that arrives, in order.
#[derive(Default)]
struct Inbox {
    works: VecDeque<Work>,
    /// Whether a task is emptying it.
    is_emptied: bool,
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
    Cancel(Cancel, Error),
}

/// What is needed to answer a request.
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
        let place = place(address)?;
        let address = match (address, &place) {
            (Address::Tcp { host, port: 0 }, socket::Address::Tcp(at)) => {
                // The port that is free now: the name of the endpoint has it.
                let free = std::net::TcpListener::bind(at).and_then(|found| found.local_addr());
                let free = free.map_err(|error| {
                    Error::unavailable(format!("can't listen at {address}: {error}"))
                })?;
                Address::Tcp {
                    host: host.clone(),
                    port: free.port(),
                }
            }
            _ => address.clone(),
        };
        let place = self::place(&address)?;
        let incarnation = Incarnation(socket::new_incarnation()?);
        let config = |name: String, limits: Limits| Config {
            name,
            incarnation: incarnation.0,
            secret: secret.clone(),
            accepts_unknown: true,
            limits,
        };
        let limits = Limits {
            join_timeout: PATIENCE,
            max_redial: MAX_REDIAL,
            max_message_bytes: 64 << 20,
            max_unacknowledged_bytes: 128 << 20,
            max_requests: 1 << 16,
            ..Limits::default()
        };
        let inner = Arc::new(Inner {
            caller: Caller {
                address: address.clone(),
                incarnation,
            },
            host: host.clone(),
            state: Mutex::default(),
            inbox: Mutex::default(),
        });
        let admission = Arc::new(Memory(host.clone()));
        let transport = SocketTransport { inner };
        let weak = Arc::downgrade(&transport.inner);
        let client = Sockets::start(
            config(format!("{CLIENT}{address}"), limits.clone()),
            admission.clone(),
            Arc::new(on_events(weak.clone(), Inner::told_as_client)),
        )?;
        let server = Sockets::start(
            config(address.to_string(), limits),
            admission,
            Arc::new(on_events(weak, Inner::told_as_server)),
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

/// Returns what hands events to a transport, if it is still there.
fn on_events(
    inner: Weak<Inner>,
    tell: fn(&Arc<Inner>, PeerId, Event),
) -> impl Fn(PeerId, Event) + Send + Sync {
    move |peer, event| {
        if let Some(inner) = inner.upgrade() {
            tell(&inner, peer, event);
        }
    }
}

/// Returns where an address is.
fn place(address: &Address) -> Result<socket::Address, Error> {
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

impl Asked {
    fn name(&self) -> &'static str {
        match self {
            Asked::Call(request) => request.name(),
            Asked::Value(..) => "SendData",
        }
    }

    fn may_matter(&self) -> bool {
        match self {
            Asked::Call(request) => !request.is_idempotent(),
            Asked::Value(..) => true,
        }
    }
}

// What both sides have.
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
        let calls = std::mem::take(&mut state.calls);
        let running = std::mem::take(&mut state.running);
        state.incoming.clear();
        drop(state);
        let works = std::mem::take(&mut self.inbox().works);
        drop((handler, works));
        // It waits for their threads, which lock the state.
        drop(sockets);
        for call in calls.into_values() {
            call.end(Err(Error::cancelled("this task has ended")));
        }
        for (_, cancel) in running.into_values() {
            cancel.cancel(Error::cancelled("this task has ended"));
        }
    }
}

// What asks.
impl Inner {
    fn ask(self: &Arc<Self>, peer: TaskHandle, asked: Asked, bounds: Bounds) -> AsyncValue<Reply> {
        let (promise, reply) = AsyncValue::pending();
        let mut state = self.lock();
        let is_closed = state.is_closed;
        let Some(known) = state.peers.get_mut(&peer).filter(|_| !is_closed) else {
            return AsyncValue::from_error(Error::new(
                ErrorCode::TaskNotFound,
                format!("No task found with TaskHandle {peer}"),
            ));
        };
        if known.phase == Phase::Lost {
            return AsyncValue::from_error(lost(&known.task));
        }
        if known.phase == Phase::Unknown {
            known.phase = Phase::Connecting;
        }
        let call = PendingCall {
            promise,
            peer,
            task: known.task.clone(),
            asked,
            deadline: bounds.deadline,
            patient_until: Instant::now() + PATIENCE,
            retries: bounds.max_retries,
            was_sent: false,
            timer: None,
            hook: None,
        };
        let number = state.n_calls;
        state.n_calls += 1;
        state.calls.insert(number, call);
        drop(state);
        self.send_call(number);
        self.bound(number, bounds);
        reply
    }

    /// Lets the deadline and the caller end a call.
    fn bound(self: &Arc<Self>, number: u64, bounds: Bounds) {
        let timer = bounds.deadline.map(|deadline| {
            let inner = Arc::downgrade(self);
            self.host.timers().schedule_at(deadline, move || {
                if let Some(inner) = inner.upgrade() {
                    inner.give_up(number, None);
                }
            })
        });
        let hook = bounds.cancel.map(|cancel| {
            let inner = Arc::downgrade(self);
            cancel.on_cancel(move |reason| {
                if let Some(inner) = inner.upgrade() {
                    inner.give_up(number, Some(reason.clone()));
                }
            })
        });
        let mut state = self.lock();
        match state.calls.get_mut(&number) {
            Some(call) => (call.timer, call.hook) = (timer, hook),
            None => {
                // It was answered before.
                drop(state);
                if let Some(timer) = timer {
                    timer.cancel();
                }
            }
        }
    }

    /// Ends a call without an answer, and tells the peer to stop.
    fn give_up(&self, number: u64, reason: Option<Error>) {
        let mut state = self.lock();
        let Some(call) = state.calls.remove(&number) else {
            return;
        };
        let reason = reason.unwrap_or_else(|| {
            let (name, task) = (call.asked.name(), call.task.clone());
            let message = format!("the deadline of a {name} to {task} has passed");
            Error::deadline_exceeded(message).with_task(task)
        });
        if call.was_sent {
            state.tell_cancelled(call.peer, number, &reason);
        }
        drop(state);
        call.end(Err(reason));
    }

    /// Sends the request of a call.
    fn send_call(self: &Arc<Self>, number: u64) {
        let mut state = self.lock();
        let Err(error) = state.send_call(number, self.host.now()) else {
            return;
        };
        drop(state);
        self.failed(number, error, false);
    }

    /// Ends a call that has failed by the connection, or tries it again.
    fn failed(self: &Arc<Self>, number: u64, error: Error, may_have_run: bool) {
        let mut state = self.lock();
        let State { calls, peers, .. } = &mut *state;
        let Some(call) = calls.get_mut(&number) else {
            return;
        };
        call.was_sent = false;
        let is_lost = error.code() == ErrorCode::Unavailable;
        let may_matter = may_have_run && call.asked.may_matter();
        let peer = peers.get_mut(&call.peer);
        // What was met is lost; what was not may be still to come.
        let was_met = peer.is_some_and(|peer| {
            let was_met = peer.incarnation.is_some();
            if was_met && is_lost {
                peer.phase = Phase::Lost;
            }
            was_met
        });
        let is_patient = call.retries > 0 || Instant::now() < call.patient_until;
        if is_lost && !was_met && !may_matter && is_patient {
            if Instant::now() >= call.patient_until {
                call.retries -= 1;
            }
            drop(state);
            let inner = Arc::downgrade(self);
            self.host.timers().schedule_after(RETRY_AFTER, move || {
                if let Some(inner) = inner.upgrade() {
                    inner.send_call(number);
                }
            });
            return;
        }
        let call = state.calls.get(&number);
        let peer = call.and_then(|call| state.peers.get(&call.peer));
        let address = peer.map_or_else(String::new, |peer| peer.address.to_string());
        let link = peer.and_then(|peer| peer.link.as_ref().ok());
        let client = state.client.as_ref().zip(link);
        let why = client.map_or_else(String::new, |(client, link)| client.why(*link));
        let call = state.calls.remove(&number);
        drop(state);
        let Some(call) = call else { return };
        let task = &call.task;
        let error = match (is_lost, may_matter, was_met) {
            (false, ..) => error.with_task(task.clone()),
            (true, true, _) => lost_after(task, call.asked.name()),
            (true, false, true) => lost(task),
            (true, false, false) => {
                let message =
                    format!("nobody listens at {address}, where task {task} should: {why}");
                Error::unavailable(message).with_task(task.clone())
            }
        };
        call.end(Err(error));
    }

    /// Hears what has happened where this task asks.
    fn told_as_client(self: &Arc<Self>, peer: PeerId, event: Event) {
        match event {
            Event::State(event::PeerState::Live) => self.lock().met(peer),
            Event::Reply { id, body } => {
                let mut state = self.lock();
                let number = state.requests.remove(&(peer, id));
                let call = number.and_then(|number| state.calls.remove(&number));
                let Some(call) = call else { return };
                let incarnation = state.links.get(&peer).and_then(|link| link.incarnation);
                if let Some(known) = state.peers.get_mut(&call.peer)
                    && known.phase != Phase::Lost
                {
                    known.phase = Phase::Live;
                    known.incarnation = known.incarnation.or(incarnation);
                }
                drop(state);
                call.complete(codec::read_answer(&body).and_then(|answer| answer));
            }
            Event::Failed {
                id,
                error,
                may_have_run,
            } => {
                let number = self.lock().requests.remove(&(peer, id));
                if let Some(number) = number {
                    self.failed(number, error, may_have_run);
                }
            }
            Event::Sent(stream) => {
                self.lock().streams.remove(&(peer, stream));
            }
            Event::SendFailed { stream, error } => {
                let mut state = self.lock();
                let number = state.streams.remove(&(peer, stream));
                // With the session its requests fail.
                if error.code() == ErrorCode::Unavailable {
                    return;
                }
                let call = number.and_then(|number| Some((number, state.calls.remove(&number)?)));
                let Some((number, call)) = call else { return };
                state.tell_cancelled(call.peer, number, &error);
                drop(state);
                call.complete(Err(error));
            }
            Event::Ended(_) => {
                let mut state = self.lock();
                let Some(link) = state.links.get_mut(&peer) else {
                    return;
                };
                let Some(incarnation) = link.incarnation.take() else {
                    return;
                };
                let address = link.address.clone();
                let mut task = None;
                for known in state.peers.values_mut() {
                    if known.address == address && known.incarnation == Some(incarnation) {
                        known.phase = Phase::Lost;
                        task = Some(known.task.clone());
                    }
                }
                drop(state);
                self.tell_lost(
                    &Caller {
                        address,
                        incarnation,
                    },
                    task,
                );
            }
            _ => (),
        }
    }

    fn tell_lost(&self, caller: &Caller, task: Option<ClusterTask>) {
        let handler = self.lock().handler.clone();
        let why = match &task {
            Some(task) => lost(task),
            None => Error::unavailable(format!("the task at {} is lost", caller.address)),
        };
        if let Some(handler) = handler {
            handler.lost(caller, &why);
        }
    }
}

impl State {
    /// Sends the request of a call. An error says why it was not sent.
    fn send_call(&mut self, number: u64, now: Instant) -> Result<(), Error> {
        let Some(call) = self.calls.get_mut(&number) else {
            return Ok(());
        };
        let peer = self.peers.get(&call.peer);
        let (Some(peer), Some(client)) = (peer, &self.client) else {
            return Err(lost(&call.task));
        };
        if peer.phase == Phase::Lost {
            return Err(lost(&peer.task));
        }
        let link = peer.link.clone()?;
        let to = peer.incarnation;
        let mut streamed = Vec::new();
        let (context, said) = match &call.asked {
            Asked::Call(request) => {
                let time_left = call
                    .deadline
                    .map(|deadline| deadline.saturating_duration_since(now));
                let request = request.clone();
                let said = Said::Call {
                    number,
                    to,
                    time_left,
                    request,
                };
                (0, said)
            }
            Asked::Value(key, payload) => {
                let buffers = payload.0.iter().zip(0_u32..).map(|(buffer, index)| {
                    let len = buffer.len_bytes();
                    if len <= INLINE_BYTES {
                        return Ok(Part::Here(buffer.read()?.to_vec()));
                    }
                    let part: payload::Part = Arc::new(Sent(buffer.clone().read_owned()?));
                    streamed.push((index, part));
                    Ok(Part::Streamed(len as u64))
                });
                let said = Said::Value {
                    number,
                    to,
                    key: key.clone(),
                    buffers: buffers.collect::<Result<_, Error>>()?,
                };
                (key.context.0, said)
            }
        };
        let id = client.request(link, context, vec![bytes(codec::write(&said))])?;
        call.was_sent = true;
        let peer = call.peer;
        self.requests.insert((link, id), number);
        for (index, part) in streamed {
            let key = stream_key(number, index);
            match client.send(link, context, &key, CODEC, vec![part]) {
                Ok(stream) => {
                    self.streams.insert((link, stream), number);
                }
                Err(error) => {
                    // The request is there, and waits for its buffers. If the session is over it fails by itself.
                    if error.code() == ErrorCode::Unavailable {
                        return Ok(());
                    }
                    self.requests.remove(&(link, id));
                    self.tell_cancelled(peer, number, &error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Tells a peer that a request was given up.
    fn tell_cancelled(&self, peer: TaskHandle, number: u64, reason: &Error) {
        let link = self
            .peers
            .get(&peer)
            .and_then(|peer| peer.link.as_ref().ok());
        if let (Some(link), Some(client)) = (link, &self.client) {
            let reason = reason.clone();
            let said = codec::write(&Said::Cancel { number, reason });
            // If it is lost it has stopped.
            drop(client.request(*link, 0, vec![bytes(said)]));
        }
    }

    /// Hears that a peer was met.
    fn met(&mut self, peer: PeerId) {
        let incarnation = self
            .client
            .as_ref()
            .and_then(|client| client.incarnation(peer));
        let incarnation = incarnation.map(Incarnation);
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        link.incarnation = incarnation;
        for known in self.peers.values_mut() {
            if known.address == link.address && known.phase != Phase::Lost {
                known.incarnation = known.incarnation.or(incarnation);
            }
        }
    }

    /// Dials an address, if nobody has yet.
    fn dial(&mut self, address: &Address, place: socket::Address) -> Result<PeerId, Error> {
        let closed = || Error::cancelled("this task has ended");
        let client = self.client.as_ref().ok_or_else(closed)?;
        let name = address.to_string();
        if let Some(peer) = client.peer(&name) {
            return Ok(peer);
        }
        let peer = client.add_peer(&name, Some(place))?;
        self.links.insert(
            peer,
            Link {
                address: address.clone(),
                incarnation: None,
            },
        );
        Ok(peer)
    }

    fn take_calls_to(&mut self, peer: TaskHandle) -> Vec<PendingCall> {
        let numbers = self.calls.iter().filter(|(_, call)| call.peer == peer);
        let numbers: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        let calls = numbers
            .iter()
            .filter_map(|number| self.calls.remove(number));
        calls.collect()
    }
}

/// Returns the key of the stream of a buffer.
fn stream_key(number: u64, index: u32) -> Vec<u8> {
    [&number.to_le_bytes()[..], &index.to_le_bytes()].concat()
}

fn read_stream_key(key: &[u8]) -> Option<(u64, usize)> {
    let (number, index) = key.split_first_chunk()?;
    let index = u32::from_le_bytes(index.try_into().ok()?);
    Some((u64::from_le_bytes(*number), index as usize))
}

// What answers.
impl Inner {
    /// Hears what has happened where this task is asked.
    fn told_as_server(self: &Arc<Self>, peer: PeerId, event: Event) {
        match event {
            Event::State(event::PeerState::Live) => {
                let mut state = self.lock();
                let Some(server) = &state.server else { return };
                let (name, incarnation) = (server.name(peer), server.incarnation(peer));
                let address = name.strip_prefix(CLIENT).map(Address::parse);
                if let (Some(Ok(address)), Some(incarnation)) = (address, incarnation) {
                    let incarnation = Incarnation(incarnation);
                    let caller = Caller {
                        address,
                        incarnation,
                    };
                    state.callers.insert(peer, caller);
                }
            }
            Event::Request { call, body, .. } => {
                if let Err(error) = self.asked(peer, call, &body) {
                    self.reply(peer, call, &Err(error));
                }
            }
            Event::Value { key, value, .. } => {
                let value = value.into_any().downcast::<Landed>();
                if let (Some((number, index)), Ok(value)) = (read_stream_key(&key), value) {
                    self.landed(peer, number, index, value.0);
                }
            }
            Event::ValueFailed { key, error, .. } => {
                let number = read_stream_key(&key).map(|(number, _)| number);
                let gone = number.and_then(|number| self.lock().incoming.remove(&(peer, number)));
                if let Some(gone) = gone {
                    self.reply(peer, gone.call, &Err(error));
                    self.hand_over(peer);
                }
            }
            Event::Ended(_) => self.caller_is_lost(peer),
            _ => (),
        }
    }

    fn caller_is_lost(self: &Arc<Self>, peer: PeerId) {
        let mut state = self.lock();
        state.incoming.retain(|(from, _), _| *from != peer);
        let mut stopped = Vec::new();
        state.running.retain(|(from, _), (_, cancel)| {
            if *from == peer {
                stopped.push(cancel.clone());
            }
            *from != peer
        });
        let caller = state.callers.remove(&peer);
        let is_it = |known: &&Peer| {
            let caller = caller.as_ref();
            caller.is_some_and(|caller| known.address == caller.address)
        };
        let task = state.peers.values().find(is_it);
        let task = task.map(|peer| peer.task.clone());
        drop(state);
        let Some(caller) = caller else { return };
        for cancel in stopped {
            let address = &caller.address;
            let message = format!("the task at {address}, which has asked for this, is lost");
            self.put(Work::Cancel(cancel, Error::unavailable(message)));
        }
        self.tell_lost(&caller, task);
    }

    /// Takes a message of a client.
    fn asked(self: &Arc<Self>, peer: PeerId, call: CallId, body: &[u8]) -> Result<(), Error> {
        let said = codec::read(body)?;
        let mut state = self.lock();
        let from = state.callers.get(&peer).cloned().ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected a client with the name '{CLIENT}ADDRESS', found another"
            ))
        })?;
        let check = |to: Option<Incarnation>| match to {
            Some(to) if to != self.caller.incarnation => {
                Err(Error::failed_precondition("stale incarnation"))
            }
            _ => Ok(()),
        };
        match said {
            Said::Call {
                number,
                to,
                time_left,
                request,
            } => {
                check(to)?;
                let cancel = Cancel::new();
                let known = (call, cancel.clone());
                state.running.insert((peer, number), known);
                drop(state);
                let bounds = Bounds {
                    deadline: time_left.and_then(|left| self.host.now().checked_add(left)),
                    cancel: Some(cancel),
                    max_retries: 0,
                };
                self.put(Work::Call {
                    from,
                    ticket: Ticket { peer, number, call },
                    request: Box::new(request),
                    bounds,
                });
            }
            Said::Value {
                number,
                to,
                key,
                buffers,
            } => {
                check(to)?;
                let mut received = Vec::with_capacity(buffers.len());
                for part in buffers {
                    received.push(match part {
                        Part::Streamed(_) => None,
                        Part::Here(bytes) => {
                            let copy = HostBuffer::copy_of(self.host.allocator(), &bytes);
                            Some(copy.ok_or_else(|| {
                                let len = bytes.len();
                                let message = format!("there is no memory for {len} bytes");
                                Error::resource_exhausted(message)
                            })?)
                        }
                    });
                }
                let incoming = Incoming {
                    call,
                    key,
                    buffers: received,
                };
                state.incoming.insert((peer, number), incoming);
                drop(state);
                self.hand_over(peer);
            }
            Said::Cancel { number, reason } => {
                let gone = state.incoming.remove(&(peer, number));
                let running = state.running.get(&(peer, number)).cloned();
                drop(state);
                self.reply(peer, call, &Ok(Reply::Done));
                if let Some((_, cancel)) = running {
                    self.put(Work::Cancel(cancel, reason));
                } else if let Some(gone) = gone {
                    self.reply(peer, gone.call, &Err(reason));
                    self.hand_over(peer);
                }
            }
        }
        Ok(())
    }

    /// Takes a buffer of a value. One that nobody has spoken of is dropped.
    fn landed(self: &Arc<Self>, peer: PeerId, number: u64, index: usize, buffer: HostBuffer) {
        let mut state = self.lock();
        let incoming = state.incoming.get_mut(&(peer, number));
        let place = incoming.and_then(|incoming| incoming.buffers.get_mut(index));
        if let Some(place @ None) = place {
            *place = Some(buffer);
            drop(state);
            self.hand_over(peer);
        }
    }

    /// Hands over the values of a client that are there, but for those behind others for their key.
    fn hand_over(self: &Arc<Self>, peer: PeerId) {
        let mut state = self.lock();
        let Some(from) = state.callers.get(&peer).cloned() else {
            return;
        };
        let mut waiting = HashSet::new();
        let mut ready = Vec::new();
        for ((_, number), incoming) in state.incoming.range((peer, 0)..=(peer, u64::MAX)) {
            let is_there = incoming.buffers.iter().all(Option::is_some);
            match is_there && !waiting.contains(&incoming.key) {
                true => ready.push(*number),
                false => {
                    waiting.insert(incoming.key.clone());
                }
            }
        }
        for number in ready {
            let Some(incoming) = state.incoming.remove(&(peer, number)) else {
                continue;
            };
            let call = incoming.call;
            // With the state locked: values are put in order.
            self.inbox().works.push_back(Work::Value {
                from: from.clone(),
                ticket: Ticket { peer, number, call },
                key: incoming.key,
                payload: Payload(incoming.buffers.into_iter().flatten().collect()),
            });
        }
        drop(state);
        self.begin_to_empty();
    }

    fn put(self: &Arc<Self>, work: Work) {
        self.inbox().works.push_back(work);
        self.begin_to_empty();
    }

    fn begin_to_empty(self: &Arc<Self>) {
        // Requests wait for a handler.
        let has_handler = self.lock().handler.is_some();
        let mut inbox = self.inbox();
        if inbox.is_emptied || inbox.works.is_empty() || !has_handler {
            return;
        }
        inbox.is_emptied = true;
        drop(inbox);
        let inner = self.clone();
        self.host.queue().add_task(Task::new(move || inner.empty()));
    }

    fn empty(self: &Arc<Self>) {
        loop {
            let handler = self.lock().handler.clone();
            let mut inbox = self.inbox();
            let work = inbox.works.pop_front();
            let (Some(work), Some(handler)) = (work, handler) else {
                // Without a handler it is closed.
                inbox.is_emptied = false;
                return;
            };
            drop(inbox);
            self.work(work, &handler);
        }
    }

    fn work(self: &Arc<Self>, work: Work, handler: &Arc<dyn Handler>) {
        match work {
            Work::Cancel(cancel, reason) => cancel.cancel(reason),
            Work::Value {
                from,
                ticket,
                key,
                payload,
            } => {
                let taken = handler.value(&from, key, payload);
                self.reply(ticket.peer, ticket.call, &taken.map(|()| Reply::Done));
            }
            Work::Call {
                from,
                ticket,
                request,
                bounds,
            } => {
                let reply = handler.call(&from, *request, bounds);
                let inner = Arc::downgrade(self);
                reply.when_settled(move |reply| {
                    let Some(inner) = inner.upgrade() else {
                        return;
                    };
                    let outcome = match reply.get() {
                        Some(Ok(reply)) => Ok(reply.clone()),
                        Some(Err(error)) => Err(error.clone()),
                        None => Err(Error::internal("a settled reply is not there")),
                    };
                    inner.answer(ticket, &outcome);
                });
            }
        }
    }

    /// Answers a call that has run.
    fn answer(&self, ticket: Ticket, outcome: &Outcome) {
        let Ticket { peer, number, call } = ticket;
        let mut state = self.lock();
        let running = state.running.get(&(peer, number));
        let is_it = running.is_some_and(|(running, _)| *running == call);
        let ended = match is_it {
            true => state.running.remove(&(peer, number)),
            false => None,
        };
        drop(state);
        drop(ended);
        self.reply(peer, call, outcome);
    }

    fn reply(&self, peer: PeerId, call: CallId, outcome: &Outcome) {
        let answer = vec![bytes(codec::write_answer(outcome))];
        let state = self.lock();
        let Some(server) = &state.server else { return };
        if let Err(error) = server.reply(peer, call, Ok(answer)) {
            // It is too long.
            let short = codec::write_answer(&Err(error));
            drop(server.reply(peer, call, Ok(vec![bytes(short)])));
        }
    }
}

impl PendingCall {
    /// Ends the call with the answer of its peer, whose errors name it.
    fn complete(self, outcome: Outcome) {
        let task = self.task.clone();
        self.end(outcome.map_err(|error| match error.message() {
            "stale incarnation" => stale(&task),
            _ => error.with_task(task),
        }));
    }

    fn end(self, outcome: Outcome) {
        if let Some(timer) = &self.timer {
            timer.cancel();
        }
        drop(self.hook);
        self.promise.complete(outcome);
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
        let link = place.and_then(|place| state.dial(address, place));
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
        state.peers.remove(&peer);
        let calls = state.take_calls_to(peer);
        drop(state);
        for call in calls {
            call.end(Err(Error::cancelled("the task was forgotten")));
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
            }
        });
        peers.collect()
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
