//! [`Participant`]: a task's part in the collectives of a context, over its transport.
//!
//! Calls, messages, losses, cancellations and times are events, which one thread at a time takes from the inbox and hands
//! to the protocol; it does the actions that come of them, and settles results. So messages leave in the order of the
//! actions, and no thread waits. It is a task of the host's queue, or the kernel that calls, or, for a few elements, the
//! thread of the transport that a message came by; results are settled where a program may run.
//!
//! Messages are values that are sent under [`NAME`], one of two buffers: the [head] and the elements.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tfrt_async::queue::{Task, TimerHandle};
use tfrt_async::{AsyncValue, ClusterTask, Error, ErrorCode, Promise};
use tfrt_host::HostContext;
use tfrt_host::memory::HostBuffer;
use tfrt_tensor::Tensor;

use super::memory::{Elements, Tensors};
use super::{Action, Call, Collectives, EAGER_BYTES, Key, Limits, Message, head};
use crate::cluster::Address;
use crate::ids::{ContextId, TaskHandle};
use crate::message::{self, Payload};
use crate::pace::Dispatcher;
use crate::transport::{Bounds, Caller, Phase, Transport, lost};

mod actions;

/// The name under which messages of collectives are sent.
pub(crate) const NAME: &str = "\0collective";

/// The time that a collective may take in a request without a deadline.
pub(crate) const DEFAULT_TIME: Duration = Duration::from_secs(600);

/// A task's part in the collectives of a context.
pub(crate) struct Participant {
    me: Weak<Participant>,
    host: HostContext,
    transport: Arc<dyn Transport>,
    context: ContextId,
    handles: BTreeMap<String, TaskHandle>,
    tasks: HashMap<Address, ClusterTask>,
    /// The zero of the protocol's clock.
    begin: Instant,
    dispatcher: Dispatcher,
    inbox: Mutex<Inbox>,
    /// Never locked by whoever holds the inbox.
    state: Mutex<State>,
}

#[derive(Default)]
struct Inbox {
    events: VecDeque<Event>,
    /// Whether somebody takes events out.
    is_emptied: bool,
}

enum Event {
    Call(Box<Called>),
    Refused(Box<Refused>),
    Arrived(ClusterTask, Key, Message<Elements>),
    Lost(ClusterTask, Error),
    Cancelled(Key, Error),
    /// A message that held lent elements has been read.
    Returned(Key),
    Time,
}

/// A call that makes sense.
struct Called {
    call: Call,
    tensors: Tensors,
    result: Promise<Tensor>,
}

/// A call that makes none.
struct Refused {
    key: Key,
    members: Vec<ClusterTask>,
    why: Error,
    result: Promise<Tensor>,
}

struct State {
    collectives: Collectives<Elements>,
    /// The collectives that run.
    live: BTreeMap<Key, Live>,
    /// When the next deadline is.
    timer: Option<(Duration, TimerHandle)>,
    ended: Option<Error>,
}

struct Live {
    /// `None` if this task fails it.
    tensors: Option<Tensors>,
    result: Promise<Tensor>,
    /// Why memory could not be used.
    broken: Option<Error>,
    /// How many messages hold elements that are lent.
    n_lent: usize,
    /// Whether the collective is done, and waits for what it has lent.
    is_done: bool,
}

impl Live {
    fn new(tensors: Option<Tensors>, result: Promise<Tensor>) -> Live {
        Live {
            tensors,
            result,
            broken: None,
            n_lent: 0,
            is_done: false,
        }
    }

    /// Ends.
    fn end(self, ended: Result<(), Error>, settled: &mut Settled) {
        let own = self.broken.map_or(Ok(()), Err);
        let result = ended.and(own).and_then(|()| {
            let tensors = self.tensors.as_ref();
            let tensors =
                tensors.ok_or_else(|| Error::internal("a refused collective can't end well"))?;
            Ok(Tensor::from(tensors.result()?.clone()))
        });
        settled.push((self.result, result));
    }
}

/// Results that are settled without locks held: whoever waits for them may run anything.
type Settled = Vec<(Promise<Tensor>, Result<Tensor, Error>)>;

type Actions = Vec<(Key, Action<Elements>)>;

impl Participant {
    /// Makes that of a context, of which `tasks` are all tasks.
    pub fn new<'t>(
        host: &HostContext,
        transport: &Arc<dyn Transport>,
        context: ContextId,
        own: ClusterTask,
        tasks: impl Iterator<Item = (ClusterTask, &'t Address, TaskHandle)>,
    ) -> Arc<Participant> {
        let (mut handles, mut names) = (BTreeMap::new(), HashMap::new());
        for (task, address, handle) in tasks {
            handles.insert(task.to_string(), handle);
            names.insert(address.clone(), task);
        }
        Arc::new_cyclic(|me| Participant {
            me: me.clone(),
            host: host.clone(),
            transport: transport.clone(),
            context,
            handles,
            tasks: names,
            begin: host.now(),
            dispatcher: Dispatcher::new(host.queue(), transport),
            inbox: Mutex::default(),
            state: Mutex::new(State {
                collectives: Collectives::new(own, Limits::default()),
                live: BTreeMap::new(),
                timer: None,
                ended: None,
            }),
        })
    }

    /// Returns a time of the host as the protocol counts it: a deadline, or that of a request which has none.
    pub fn deadline(&self, deadline: Option<Instant>) -> Duration {
        match deadline {
            Some(deadline) => deadline.saturating_duration_since(self.begin),
            None => self.now() + DEFAULT_TIME,
        }
    }

    /// Calls a collective, and returns its result, which is to come.
    pub fn call(&self, call: Call, tensors: Tensors) -> AsyncValue<Tensor> {
        let (result, value) = AsyncValue::pending();
        let settled = self.push_now(Event::Call(Box::new(Called {
            call,
            tensors,
            result,
        })));
        self.settle(settled);
        value
    }

    /// Fails a collective on all members, since the call of this one makes no sense.
    pub fn refuse(&self, key: Key, members: Vec<ClusterTask>, why: Error) -> AsyncValue<Tensor> {
        let (result, value) = AsyncValue::pending();
        let settled = self.push_now(Event::Refused(Box::new(Refused {
            key,
            members,
            why,
            result,
        })));
        self.settle(settled);
        value
    }

    /// Takes it that the caller of a collective does not want its result any more.
    pub fn cancel(&self, key: Key, reason: Error) {
        self.push(Event::Cancelled(key, reason));
    }

    /// Takes a message. The work that is returned settles results that have come of it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none, or of a task that is none of the context.
    pub fn arrived(&self, from: &Caller, payload: &Payload) -> Result<Option<Task>, Error> {
        let address = &from.address;
        let task = self.tasks.get(address).ok_or_else(|| {
            Error::invalid_argument(format!(
                "a message of a collective from {address}, where no task of the context listens"
            ))
        })?;
        let (first, elements) = match payload.0.as_slice() {
            [first] => (first, None),
            [first, elements] => (first, Some(elements)),
            other => {
                let n_buffers = other.len();
                return Err(Error::invalid_argument(format!(
                    "expected a message of a collective of 1 or 2 buffers, found {n_buffers}"
                )));
            }
        };
        let (key, message) = head::read(&first.read()?, || elements.cloned())?;
        let is_whole = match &message {
            Message::Piece { data, .. } => data.is_some(),
            _ => elements.is_none(),
        };
        if !is_whole {
            return Err(Error::invalid_argument(
                "expected elements behind the head of a piece, and behind no other",
            ));
        }
        let empty = || HostBuffer::from_owner([0_u8; 0]);
        let message = message.map(|data| Elements(data.unwrap_or_else(empty)));
        // Arithmetic on many elements would keep the transport's thread from its sockets.
        let is_short = elements.is_none_or(|elements| elements.len_bytes() <= EAGER_BYTES);
        let event = Event::Arrived(task.clone(), key, message);
        Ok(match is_short {
            true => self.settling(self.push_now(event)),
            false => {
                self.push(event);
                None
            }
        })
    }

    /// Takes it that a task is lost.
    pub fn lose(&self, task: &ClusterTask) {
        self.push(Event::Lost(task.clone(), lost(task)));
    }

    /// Ends: what runs fails, and others are told so.
    pub fn end(&self, reason: &Error) {
        // What comes of messages waits: the state is locked.
        let is_emptied = self.begin_to_empty();
        let mut settled = Settled::new();
        let timer = {
            let mut state = self.lock();
            let keys: Vec<Key> = state.live.keys().cloned().collect();
            for key in keys {
                let actions = state.collectives.cancel(&key, reason);
                self.act(&mut state, actions, &mut settled);
            }
            state.ended.get_or_insert_with(|| reason.clone());
            let left = std::mem::take(&mut state.live).into_values();
            for live in left {
                let ended = if live.is_done {
                    Ok(())
                } else {
                    Err(reason.clone())
                };
                live.end(ended, &mut settled);
            }
            state.timer.take()
        };
        if let Some((_, timer)) = timer {
            timer.cancel();
        }
        self.settle(settled);
        if !is_emptied {
            let settled = self.empty();
            self.settle(settled);
        }
    }

    /// Settles results where what waits for them may run.
    fn settle(&self, settled: Settled) {
        if let Some(work) = self.settling(settled) {
            work.run();
        }
    }

    fn settling(&self, settled: Settled) -> Option<Task> {
        if settled.is_empty() {
            return None;
        }
        let dispatcher = self.dispatcher.clone();
        let settle = move || {
            for (promise, result) in settled {
                promise.complete(result);
            }
        };
        Some(Task::new(move || dispatcher.run(settle)))
    }

    fn now(&self) -> Duration {
        self.host.now().saturating_duration_since(self.begin)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether somebody takes events out already; if not, the caller has to.
    fn begin_to_empty(&self) -> bool {
        std::mem::replace(&mut self.lock_inbox().is_emptied, true)
    }

    /// Adds an event, and takes events out on this thread, if nobody else does.
    fn push_now(&self, event: Event) -> Settled {
        self.lock_inbox().events.push_back(event);
        match self.begin_to_empty() {
            true => Settled::new(),
            false => self.empty(),
        }
    }

    fn push(&self, event: Event) {
        self.lock_inbox().events.push_back(event);
        if self.begin_to_empty() {
            return;
        }
        let me = self.me.clone();
        self.host.queue().add_task(Task::new(move || {
            if let Some(me) = me.upgrade() {
                let settled = me.empty();
                me.settle(settled);
            }
        }));
    }

    /// Takes events out, and returns the results that have come of them.
    fn empty(&self) -> Settled {
        let mut settled = Settled::new();
        loop {
            let event = {
                let mut inbox = self.lock_inbox();
                let event = inbox.events.pop_front();
                inbox.is_emptied = event.is_some();
                event
            };
            let Some(event) = event else {
                return settled;
            };
            self.handle(&mut self.lock(), event, &mut settled);
        }
    }

    fn handle(&self, state: &mut State, event: Event, settled: &mut Settled) {
        if let Some(reason) = state.ended.clone() {
            let result = match event {
                Event::Call(called) => called.result,
                Event::Refused(refused) => refused.result,
                _ => return,
            };
            settled.push((result, Err(reason)));
            return;
        }
        let actions = match event {
            Event::Call(called) => self.begin(state, *called, settled),
            Event::Refused(refused) => refuse(state, *refused, settled),
            Event::Arrived(from, key, message) => state.collectives.arrived(&from, &key, message),
            Event::Lost(task, why) => state.collectives.lost(&task, &why),
            Event::Cancelled(key, reason) => state.collectives.cancel(&key, &reason),
            Event::Returned(key) => {
                returned(state, &key, settled);
                Actions::new()
            }
            Event::Time => {
                state.timer = None;
                state.collectives.expire(self.now())
            }
        };
        self.act(state, actions, settled);
        self.set_timer(state);
    }

    fn begin(&self, state: &mut State, called: Called, settled: &mut Settled) -> Actions {
        let Called {
            call,
            tensors,
            result,
        } = called;
        let mut actions = self.look_for(state, &call.members);
        let key = call.key.clone();
        match state.collectives.begin(call) {
            Ok(begun) => {
                state.live.insert(key, Live::new(Some(tensors), result));
                actions.extend(begun);
            }
            Err(error) => settled.push((result, Err(error))),
        }
        actions
    }

    /// Tells the protocol which members are there by now: one that was lost may be back.
    fn look_for(&self, state: &mut State, members: &[ClusterTask]) -> Actions {
        let peers = self.transport.peers();
        let phases: HashMap<TaskHandle, Phase> = peers
            .into_iter()
            .map(|peer| (peer.handle, peer.phase))
            .collect();
        let mut actions = Actions::new();
        for member in members {
            let handle = self.handles.get(&member.to_string());
            match handle.and_then(|handle| phases.get(handle)) {
                Some(Phase::Lost) => actions.extend(state.collectives.lost(member, &lost(member))),
                _ => state.collectives.back(member),
            }
        }
        actions
    }

    fn set_timer(&self, state: &mut State) {
        let next = state.collectives.next_deadline();
        if state.timer.as_ref().map(|(at, _)| *at) == next {
            return;
        }
        if let Some((_, timer)) = state.timer.take() {
            timer.cancel();
        }
        state.timer = next.map(|at| {
            let me = self.me.clone();
            let timers = self.host.timers();
            let timer = timers.schedule_after(at.saturating_sub(self.now()), move || {
                if let Some(me) = me.upgrade() {
                    me.push(Event::Time);
                }
            });
            (at, timer)
        });
    }
}

/// Fails a collective on all members.
fn refuse(state: &mut State, refused: Refused, settled: &mut Settled) -> Actions {
    let Refused {
        key,
        members,
        why,
        result,
    } = refused;
    match state.collectives.refuse(&key, &members, why) {
        Ok(actions) => {
            state.live.insert(key, Live::new(None, result));
            actions
        }
        Err(error) => {
            settled.push((result, Err(error)));
            Actions::new()
        }
    }
}

/// Notes that a message has been read whose elements were lent, and ends a collective that has waited for that.
fn returned(state: &mut State, key: &Key, settled: &mut Settled) {
    let Some(live) = state.live.get_mut(key) else {
        return;
    };
    live.n_lent = live.n_lent.saturating_sub(1);
    if live.n_lent == 0
        && live.is_done
        && let Some(live) = state.live.remove(key)
    {
        live.end(Ok(()), settled);
    }
}

#[cfg(test)]
mod tests;
