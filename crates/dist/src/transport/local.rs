//! [`LocalNetwork`]: tasks within one process, which hand each other messages.
//!
//! Each task is an endpoint with an inbox, which a task of its host's queue empties in order. The network has switches for
//! tests: messages are delivered twice, are held back, or do not get through.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tfrt_async::queue::Task;
use tfrt_async::{AsyncValue, Chain, ClusterTask, Error};
use tfrt_host::HostContext;

use super::once::{Admission, Answers, Outstanding, RequestId};
use super::pending::{Asked, Outcome, PendingCall, Stops};
use super::{Bounds, Caller, Cancel, Handler, PeerState, Phase, Transport, lost};
use crate::cluster::Address;
use crate::ids::{Incarnation, TaskHandle};
use crate::message::{Key, Payload, Reply, Request};

mod network;

/// The time between two tries to reach a task that does not listen yet.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// The time for which a task may be cut off and come back as the one that it was.
const LEASE: Duration = Duration::from_secs(10);

/// A network within this process. Clones are the same network.
#[derive(Clone, Default)]
pub struct LocalNetwork(Arc<Network>);

#[derive(Default)]
struct Network {
    state: Mutex<NetworkState>,
}

#[derive(Default)]
struct NetworkState {
    endpoints: BTreeMap<Address, Arc<Endpoint>>,
    duplicates: bool,
    /// Messages that are held back, if they are.
    held: Option<Vec<(Address, Message)>>,
    cuts: BTreeSet<(Address, Address)>,
}

/// A transport of a [`LocalNetwork`]. Dropping it closes it.
pub struct LocalTransport {
    endpoint: Arc<Endpoint>,
    /// Kept alive by whoever is on it.
    _network: LocalNetwork,
}

struct Endpoint {
    network: Weak<Network>,
    caller: Caller,
    host: HostContext,
    state: Mutex<EndpointState>,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    messages: VecDeque<Message>,
    /// Whether a task is emptying it.
    is_emptied: bool,
}

#[derive(Default)]
struct EndpointState {
    handler: Option<Arc<dyn Handler>>,
    peers: HashMap<TaskHandle, Peer>,
    outstanding: Outstanding,
    calls: HashMap<u64, PendingCall>,
    answers: Answers<Outcome>,
    running: HashMap<RequestId, Cancel>,
    /// Requests that were cancelled before they came.
    cancelled: HashMap<RequestId, Error>,
    /// Calls that nobody here waits for any more, and whose peers have not answered.
    given_up: HashMap<u64, TaskHandle>,
    is_closed: bool,
}

struct Peer {
    task: ClusterTask,
    address: Address,
    incarnation: Option<Incarnation>,
    phase: Phase,
}

#[derive(Clone)]
struct Message {
    from: Caller,
    /// The start of the process that it is for, if its sender knows one.
    to: Option<Incarnation>,
    body: Body,
}

#[derive(Clone)]
enum Body {
    Asked {
        number: u64,
        acked_below: u64,
        time_left: Option<Duration>,
        what: Asked,
    },
    Answered(u64, Outcome),
    Cancelled(u64, Error),
}

impl Endpoint {
    fn lock(&self) -> MutexGuard<'_, EndpointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, to: &Address, incarnation: Option<Incarnation>, body: Body) -> bool {
        let message = Message {
            from: self.caller.clone(),
            to: incarnation,
            body,
        };
        let network = self.network.upgrade();
        network.is_some_and(|network| network.deliver(to, message))
    }

    /// Puts a message into the inbox, and sees to it that it is emptied.
    fn put(self: &Arc<Self>, message: Message) {
        self.inbox().messages.push_back(message);
        self.begin_to_empty();
    }

    fn begin_to_empty(self: &Arc<Self>) {
        // Requests wait for a handler; they are few before it is there.
        let has_handler = self.lock().handler.is_some();
        let mut inbox = self.inbox();
        let is_answer = |message: &Message| matches!(message.body, Body::Answered(..));
        let is_ready = has_handler || inbox.messages.iter().any(is_answer);
        if inbox.is_emptied || inbox.messages.is_empty() || !is_ready {
            return;
        }
        inbox.is_emptied = true;
        drop(inbox);
        let endpoint = self.clone();
        self.host
            .queue()
            .add_task(Task::new(move || endpoint.empty()));
    }

    fn empty(self: &Arc<Self>) {
        loop {
            let handler = self.lock().handler.clone();
            let mut inbox = self.inbox();
            let index = inbox.messages.iter().position(|message| {
                handler.is_some() || matches!(message.body, Body::Answered(..))
            });
            let Some(message) = index.and_then(|index| inbox.messages.remove(index)) else {
                inbox.is_emptied = false;
                return;
            };
            drop(inbox);
            self.receive(message, handler.as_ref());
        }
    }

    fn receive(self: &Arc<Self>, message: Message, handler: Option<&Arc<dyn Handler>>) {
        let Message { from, to, body } = message;
        match (body, handler) {
            (Body::Answered(number, outcome), _) => self.answered(&from, number, outcome),
            (Body::Cancelled(number, reason), _) => {
                let id = RequestId {
                    client: from.incarnation,
                    number,
                };
                let mut state = self.lock();
                match state.running.get(&id).cloned() {
                    Some(cancel) => {
                        drop(state);
                        cancel.cancel(reason);
                    }
                    // The request is still to come, or its answer is there.
                    None if !state.answers.is_known(id) => {
                        state.cancelled.insert(id, reason);
                    }
                    None => (),
                }
            }
            (
                Body::Asked {
                    number,
                    acked_below,
                    time_left,
                    what,
                },
                Some(handler),
            ) => {
                if to.is_some_and(|to| to != self.caller.incarnation) {
                    let error = Error::failed_precondition("stale incarnation");
                    self.reply(&from, number, Err(error));
                    return;
                }
                let id = RequestId {
                    client: from.incarnation,
                    number,
                };
                let admission = self.lock().answers.admit(id, acked_below);
                match admission {
                    Admission::Run => self.run(&from, id, time_left, what, handler),
                    Admission::Answered(outcome) => self.reply(&from, number, outcome),
                    Admission::Running | Admission::Forgotten => (),
                    Admission::Gone => {
                        let seconds = LEASE.as_secs();
                        let message = format!(
                            "this task was lost for {seconds} s, and what it has had here is gone"
                        );
                        self.reply(&from, number, Err(Error::failed_precondition(message)));
                    }
                    Admission::Full => {
                        let message =
                            "too many answers are kept: their receipt was not acknowledged";
                        self.reply(&from, number, Err(Error::resource_exhausted(message)));
                    }
                }
            }
            (Body::Asked { .. }, None) => (),
        }
    }

    /// Has the handler do what was asked, and answers when it has.
    fn run(
        self: &Arc<Self>,
        from: &Caller,
        id: RequestId,
        time_left: Option<Duration>,
        what: Asked,
        handler: &Arc<dyn Handler>,
    ) {
        let cancel = Cancel::new();
        let bounds = Bounds {
            deadline: time_left.and_then(|left| self.host.now().checked_add(left)),
            cancel: Some(cancel.clone()),
            max_retries: 0,
            may_wait: false,
        };
        let mut state = self.lock();
        state.running.insert(id, cancel.clone());
        let early = state.cancelled.remove(&id);
        drop(state);
        if let Some(reason) = early {
            // Whoever waits for its results is told by the handler.
            cancel.cancel(reason);
        }
        let mut left = None;
        let reply = match what {
            Asked::Call(request) => handler.call(from, request, bounds),
            Asked::Value(key, payload) => {
                let taken = handler.value(from, key, payload);
                AsyncValue::from(taken.map(|work| {
                    left = work;
                    Reply::Done
                }))
            }
        };
        let (endpoint, from) = (Arc::downgrade(self), from.clone());
        reply.when_settled(move |reply| {
            let Some(endpoint) = endpoint.upgrade() else {
                return;
            };
            let outcome = match reply.get() {
                Some(Ok(reply)) => Ok(reply.clone()),
                Some(Err(error)) => Err(error.clone()),
                None => Err(Error::internal("a settled reply is not there")),
            };
            let mut state = endpoint.lock();
            state.running.remove(&id);
            state
                .answers
                .answer(id, outcome.clone(), len_bytes(&outcome));
            drop(state);
            endpoint.reply(&from, id.number, outcome);
        });
        if let Some(left) = left {
            left.run();
        }
    }

    fn reply(&self, to: &Caller, number: u64, outcome: Outcome) {
        let _lost = self.deliver(
            &to.address,
            Some(to.incarnation),
            Body::Answered(number, outcome),
        );
    }

    /// Ends a call with the answer of its peer. A second or late one finds no call.
    fn answered(&self, from: &Caller, number: u64, outcome: Outcome) {
        let mut state = self.lock();
        if !state.outstanding.end(number) {
            return;
        }
        state.given_up.remove(&number);
        let Some(call) = state.calls.remove(&number) else {
            return;
        };
        if let Some(peer) = state.peers.get_mut(&call.peer)
            && peer.phase != Phase::Lost
        {
            peer.phase = Phase::Live;
            peer.incarnation = Some(from.incarnation);
        }
        drop(state);
        call.complete(outcome);
    }

    /// Begins a call, and sends it.
    fn ask(self: &Arc<Self>, peer: TaskHandle, what: Asked, bounds: Bounds) -> AsyncValue<Reply> {
        let (promise, reply) = AsyncValue::pending();
        let mut state = self.lock();
        let Some(known) = state.peers.get(&peer).filter(|_| !state.is_closed) else {
            return AsyncValue::from_error(Error::new(
                tfrt_async::ErrorCode::TaskNotFound,
                format!("No task found with TaskHandle {peer}"),
            ));
        };
        if known.phase == Phase::Lost {
            return AsyncValue::from_error(lost(&known.task));
        }
        let call = PendingCall::new(promise, peer, known.task.clone(), &what);
        let number = state.outstanding.begin();
        state.calls.insert(number, call);
        drop(state);
        self.send_call(number, what, &bounds, bounds.max_retries);
        self.bound(number, bounds);
        reply
    }

    /// Lets the deadline and the caller end a call.
    fn bound(self: &Arc<Self>, number: u64, bounds: Bounds) {
        let endpoint = Arc::downgrade(self);
        let stops = Stops::new(&self.host, bounds, move |reason| {
            if let Some(endpoint) = endpoint.upgrade() {
                endpoint.give_up(number, reason);
            }
        });
        let mut state = self.lock();
        match state.calls.get_mut(&number) {
            Some(call) => call.set_stops(stops),
            None => {
                // It was answered before.
                drop(state);
                stops.end();
            }
        }
    }

    /// Ends a call without an answer, and tells the peer to stop. The request stays outstanding until the peer has
    /// answered: it may still be on its way, and others may wait for its results.
    fn give_up(&self, number: u64, reason: Option<Error>) {
        let mut state = self.lock();
        let Some(call) = state.calls.remove(&number) else {
            return;
        };
        match call.was_sent {
            true => {
                state.given_up.insert(number, call.peer);
            }
            false => {
                state.outstanding.end(number);
            }
        }
        let peer = state.peers.get(&call.peer);
        let peer = peer.map(|peer| (peer.address.clone(), peer.incarnation));
        drop(state);
        let reason = reason.unwrap_or_else(|| call.timed_out());
        if let Some((address, incarnation)) = peer {
            let body = Body::Cancelled(number, reason.clone());
            let _lost = self.deliver(&address, incarnation, body);
        }
        call.end(Err(reason));
    }

    /// Sends the request of a call; tries again if nobody listens there yet.
    fn send_call(self: &Arc<Self>, number: u64, what: Asked, bounds: &Bounds, retries: u32) {
        let mut state = self.lock();
        let acked_below = state.outstanding.acked_below();
        let handle = state.calls.get(&number).map(|call| call.peer);
        let peer = handle.and_then(|handle| state.peers.get_mut(&handle));
        let Some(peer) = peer else {
            return;
        };
        if peer.phase == Phase::Unknown {
            peer.phase = Phase::Connecting;
        }
        let (address, incarnation) = (peer.address.clone(), peer.incarnation);
        // Before it is sent: it may be answered at once.
        if let Some(call) = state.calls.get_mut(&number) {
            call.was_sent = true;
        }
        drop(state);
        let now = self.host.now();
        let body = Body::Asked {
            number,
            acked_below,
            time_left: bounds
                .deadline
                .map(|deadline| deadline.saturating_duration_since(now)),
            what: what.clone(),
        };
        if self.deliver(&address, incarnation, body) {
            return;
        }
        let mut state = self.lock();
        let Some(call) = state.calls.get_mut(&number) else {
            return;
        };
        call.was_sent = false;
        if retries > 0 {
            drop(state);
            let (endpoint, bounds) = (Arc::downgrade(self), bounds.clone());
            self.host.timers().schedule_after(RETRY_AFTER, move || {
                if let Some(endpoint) = endpoint.upgrade() {
                    endpoint.send_call(number, what, &bounds, retries - 1);
                }
            });
            return;
        }
        state.outstanding.end(number);
        let call = state.calls.remove(&number);
        drop(state);
        if let Some(call) = call {
            let task = call.task.clone();
            let message = format!("nobody listens at {address}, where task {task} should");
            call.end(Err(Error::unavailable(message).with_task(task)));
        }
    }

    /// Ends all that waits for a task that is lost, and tells the handler.
    fn peer_is_lost(&self, caller: &Caller) {
        let mut state = self.lock();
        let mut handles = BTreeSet::new();
        let mut task = None;
        for (handle, peer) in &mut state.peers {
            if peer.address == caller.address && peer.phase != Phase::Lost {
                peer.phase = Phase::Lost;
                task = Some(peer.task.clone());
                handles.insert(*handle);
            }
        }
        let calls = state.take_calls_to(&handles);
        let handler = state.handler.clone();
        let is_its = |id: &RequestId| id.client == caller.incarnation;
        let stopped: Vec<Cancel> = state
            .running
            .iter()
            .filter(|(id, _)| is_its(id))
            .map(|(_, cancel)| cancel.clone())
            .collect();
        state.cancelled.retain(|id, _| !is_its(id));
        drop(state);
        for cancel in stopped {
            let address = &caller.address;
            cancel.cancel(Error::unavailable(format!(
                "the task at {address}, which has asked for this, is lost"
            )));
        }
        for call in calls {
            let error = call.lost();
            call.end(Err(error));
        }
        if let Some(handler) = handler {
            let why = match &task {
                Some(task) => lost(task),
                None => Error::unavailable(format!("the task at {} is lost", caller.address)),
            };
            handler.lost(caller, &why);
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_closed, true) {
            return;
        }
        let all = state.peers.keys().copied().collect();
        let calls = state.take_calls_to(&all);
        let (handler, running) = (state.handler.take(), std::mem::take(&mut state.running));
        drop(state);
        drop(handler);
        let others = self.network.upgrade().map(|network| {
            let mut state = network.lock();
            state.endpoints.remove(&self.caller.address);
            state.endpoints.values().cloned().collect::<Vec<_>>()
        });
        for call in calls {
            call.end(Err(Error::cancelled("this task has ended")));
        }
        for cancel in running.into_values() {
            cancel.cancel(Error::cancelled("this task has ended"));
        }
        for other in others.unwrap_or_default() {
            other.peer_is_lost(&self.caller);
        }
    }
}

impl EndpointState {
    fn take_calls_to(&mut self, peers: &BTreeSet<TaskHandle>) -> Vec<PendingCall> {
        let numbers: Vec<u64> = self
            .calls
            .iter()
            .filter(|(_, call)| peers.contains(&call.peer))
            .map(|(number, _)| *number)
            .collect();
        let outstanding = &mut self.outstanding;
        self.given_up.retain(|number, peer| {
            let is_over = peers.contains(peer);
            if is_over {
                outstanding.end(*number);
            }
            !is_over
        });
        let calls = numbers.iter().filter_map(|number| {
            self.outstanding.end(*number);
            self.calls.remove(number)
        });
        calls.collect()
    }
}

/// Returns about how many bytes an answer takes.
fn len_bytes(outcome: &Outcome) -> usize {
    match outcome {
        Ok(Reply::Executed(metadata)) => metadata
            .iter()
            .map(|metadata| metadata.as_ref().map_or(64, Vec::len) + 16)
            .sum(),
        Ok(_) => 64,
        Err(error) => error.message().len() + 64,
    }
}

impl Transport for LocalTransport {
    fn address(&self) -> &Address {
        &self.endpoint.caller.address
    }

    fn incarnation(&self) -> Incarnation {
        self.endpoint.caller.incarnation
    }

    fn introduce(&self, peer: TaskHandle, task: &ClusterTask, address: &Address) {
        let peer_state = Peer {
            task: task.clone(),
            address: address.clone(),
            incarnation: None,
            phase: Phase::Unknown,
        };
        self.endpoint.lock().peers.insert(peer, peer_state);
    }

    fn forget(&self, peer: TaskHandle) {
        let mut state = self.endpoint.lock();
        state.peers.remove(&peer);
        let calls = state.take_calls_to(&BTreeSet::from([peer]));
        drop(state);
        for call in calls {
            call.end(Err(Error::cancelled("the task was forgotten")));
        }
    }

    fn call(&self, peer: TaskHandle, request: Request, bounds: Bounds) -> AsyncValue<Reply> {
        self.endpoint.ask(peer, Asked::Call(request), bounds)
    }

    fn send(
        &self,
        peer: TaskHandle,
        key: Key,
        value: Payload,
        bounds: Bounds,
    ) -> AsyncValue<Chain> {
        let reply = self.endpoint.ask(peer, Asked::Value(key, value), bounds);
        reply.map(|_| Chain)
    }

    fn serve(&self, handler: Arc<dyn Handler>) {
        self.endpoint.lock().handler = Some(handler);
        self.endpoint.begin_to_empty();
    }

    fn peers(&self) -> Vec<PeerState> {
        let state = self.endpoint.lock();
        let peers = state.peers.iter().map(|(handle, peer)| PeerState {
            handle: *handle,
            task: peer.task.clone(),
            address: peer.address.clone(),
            incarnation: peer.incarnation,
            phase: peer.phase,
            why: String::new(),
        });
        peers.collect()
    }

    fn lease(&self) -> Duration {
        LEASE
    }

    fn forget_client(&self, client: Incarnation) {
        let mut state = self.endpoint.lock();
        state.answers.forget(client);
        state.cancelled.retain(|id, _| id.client != client);
    }

    fn close(&self) {
        self.endpoint.close();
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        self.endpoint.close();
    }
}

impl fmt::Debug for LocalTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalTransport({})", self.address())
    }
}
