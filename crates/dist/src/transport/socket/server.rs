//! The side that answers: requests and values on their way to the handler, and what it says.

use std::collections::HashSet;
use std::sync::Arc;

use tfrt_async::queue::Task;
use tfrt_async::{ClusterTask, Error, ErrorCode};
use tfrt_host::memory::HostBuffer;
use tfrt_wire::endpoint::{PeerId, bytes};
use tfrt_wire::event::{self, CallId, Event};
use tfrt_wire::socket::lasting;

use super::codec::{self, Part, Said};
use super::{AS, CLIENT, Incoming, Inner, Landed, Outcome, Peer, State, Ticket, Work};
use crate::cluster::Address;
use crate::ids::Incarnation;
use crate::message::{Payload, Reply};
use crate::transport::{Bounds, Caller, Cancel, Handler};

/// Whether somebody waits for an answer.
#[derive(Clone, Copy)]
enum Hurry {
    Now,
    Later,
}

impl Inner {
    /// Hears what has happened where this task is asked.
    pub(super) fn told_as_server(self: &Arc<Self>, peer: PeerId, event: Event) {
        match event {
            Event::State(event::PeerState::Live) => {
                let mut state = self.lock();
                let Some(server) = &state.server else { return };
                let (name, incarnation) = (server.name(peer), server.incarnation(peer));
                let has_names = self.caller.task.is_some();
                let caller = incarnation.and_then(|incarnation| {
                    let (address, task) = read_client_name(&name, has_names)?;
                    Some(Caller {
                        address,
                        incarnation: Incarnation(incarnation),
                        task,
                    })
                });
                if let Some(caller) = caller {
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
        state.unanswered.remove(&peer);
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
            self.put(Work::Cancel(peer, cancel, Error::unavailable(message)));
        }
        self.tell_lost(&caller, task);
    }

    /// Counts bytes that a client has sent, or is about to, with a request that is to be answered.
    fn admit(&self, peer: PeerId, call: CallId, len_bytes: usize) -> Result<(), Error> {
        let mut state = self.lock();
        let State {
            unanswered, quotas, ..
        } = &mut *state;
        let own = unanswered.entry(peer).or_default();
        if own.by_call.len() >= quotas.requests {
            let most = quotas.requests;
            return Err(Error::resource_exhausted(format!(
                "a task may have {most} requests that are not answered yet"
            )));
        }
        let n_bytes = own.len_bytes.saturating_add(len_bytes);
        if n_bytes > quotas.request_bytes {
            let most = quotas.request_bytes;
            return Err(Error::resource_exhausted(format!(
                "requests of a task that are not answered yet may have {most} bytes: with another they have {n_bytes}"
            )));
        }
        own.by_call.insert(call, len_bytes);
        own.len_bytes = n_bytes;
        Ok(())
    }

    /// Checks that a client with a certificate is the task that is known at the address at which it says to listen.
    fn check_address(state: &State, from: &Caller) -> Result<(), Error> {
        let Some(task) = &from.task else {
            return Ok(());
        };
        let mut known = state.peers.values();
        match known.find(|peer| peer.address == from.address && peer.task != *task) {
            None => Ok(()),
            Some(peer) => Err(Error::new(
                ErrorCode::PermissionDenied,
                format!(
                    "expected a certificate of {}, which is known at {}, found one of {task}",
                    peer.task, peer.address
                ),
            )),
        }
    }

    /// Takes a message of a client.
    fn asked(self: &Arc<Self>, peer: PeerId, call: CallId, body: &[u8]) -> Result<(), Error> {
        let said = codec::read(body)?;
        let len_bytes = match &said {
            Said::Call { .. } => Some(body.len()),
            Said::Value { buffers, .. } => {
                let streamed = buffers.iter().map(|part| match part {
                    Part::Streamed(len) => usize::try_from(*len).unwrap_or(usize::MAX),
                    Part::Here(_) => 0,
                });
                Some(streamed.fold(body.len(), usize::saturating_add))
            }
            // Who has asked too much may take it back.
            Said::Cancel { .. } => None,
        };
        if let Some(len_bytes) = len_bytes {
            self.admit(peer, call, len_bytes)?;
        }
        let mut state = self.lock();
        let from = state.callers.get(&peer).cloned().ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected a client with the name '{CLIENT}ADDRESS', found another"
            ))
        })?;
        Inner::check_address(&state, &from)?;
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
                    may_wait: false,
                };
                let work = Work::Call {
                    from,
                    ticket: Ticket { peer, number, call },
                    request: Box::new(request),
                    bounds,
                };
                match self.handler_here(&work) {
                    Some(handler) => {
                        lasting(|| drop(self.work(work, &handler, Hurry::Now)));
                    }
                    None => self.put(work),
                }
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
                        Part::Streamed(len) => Err(len),
                        Part::Here(bytes) => {
                            let copy = HostBuffer::copy_of(self.host.allocator(), &bytes);
                            Ok(copy.ok_or_else(|| {
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
            Said::Cancel { numbers, reason } => {
                let (mut gone, mut running) = (Vec::new(), Vec::new());
                for number in numbers {
                    gone.extend(state.incoming.remove(&(peer, number)));
                    running.extend(state.running.get(&(peer, number)).cloned());
                }
                drop(state);
                self.reply(peer, call, &Ok(Reply::Done));
                for (_, cancel) in running {
                    self.put(Work::Cancel(peer, cancel, reason.clone()));
                }
                if !gone.is_empty() {
                    for gone in gone {
                        self.reply(peer, gone.call, &Err(reason.clone()));
                    }
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
        let Some(place) = place else { return };
        let found = buffer.len_bytes() as u64;
        let refused = match place {
            Err(expected) if *expected == found => {
                *place = Ok(buffer);
                None
            }
            Err(expected) => Some(format!(
                "buffer {index} of a value: expected {expected} bytes, found {found}"
            )),
            Ok(_) => Some(format!("buffer {index} of a value came twice")),
        };
        let gone = refused.and_then(|message| {
            let gone = state.incoming.remove(&(peer, number))?;
            Some((gone.call, Error::invalid_argument(message)))
        });
        drop(state);
        if let Some((call, error)) = gone {
            self.reply(peer, call, &Err(error));
        }
        self.hand_over(peer);
    }

    /// Hands over the values of a client that are there, but for those behind others for their key.
    fn hand_over(self: &Arc<Self>, peer: PeerId) {
        let mut state = self.lock();
        let handler = state.handler.clone();
        let Some(from) = state.callers.get(&peer).cloned() else {
            return;
        };
        let mut waiting = HashSet::new();
        let mut ready = Vec::new();
        for ((_, number), incoming) in state.incoming.range((peer, 0)..=(peer, u64::MAX)) {
            let is_there = incoming.buffers.iter().all(Result::is_ok);
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
            self.inbox().push(Work::Value {
                from: from.clone(),
                ticket: Ticket { peer, number, call },
                key: incoming.key,
                payload: Payload(incoming.buffers.into_iter().flatten().collect()),
            });
        }
        let quick = handler.and_then(|handler| Some((self.take_quick(&handler)?, handler)));
        drop(state);
        let mut left = None;
        if let Some((work, handler)) = quick {
            left = self.work(work, &handler, Hurry::Later);
            self.inbox().is_emptied = false;
        }
        self.begin_to_empty();
        if let Some(left) = left {
            lasting(|| left.run());
        }
    }

    /// Takes the only work that waits, if it is a value that may be handed over on this thread; others then wait until
    /// it is, so that values keep their order.
    fn take_quick(&self, handler: &Arc<dyn Handler>) -> Option<Work> {
        let mut inbox = self.inbox();
        if inbox.is_emptied {
            return None;
        }
        let Some(Work::Value { key, payload, .. }) = inbox.only() else {
            return None;
        };
        if !handler.is_quick(key, payload) {
            return None;
        }
        inbox.is_emptied = true;
        inbox.pop()
    }

    /// Returns the handler of a request that is to be answered on this thread: one that is mostly short, if nothing waits
    /// that came before it.
    fn handler_here(&self, work: &Work) -> Option<Arc<dyn Handler>> {
        let Work::Call { request, .. } = work else {
            return None;
        };
        let inbox = self.inbox();
        let waits = inbox.is_emptied || !inbox.is_empty();
        drop(inbox);
        let handler = self.lock().handler.clone().filter(|_| !waits)?;
        handler.is_short(request).then_some(handler)
    }

    fn put(self: &Arc<Self>, work: Work) {
        self.inbox().push(work);
        self.begin_to_empty();
    }

    pub(super) fn begin_to_empty(self: &Arc<Self>) {
        // Requests wait for a handler.
        let has_handler = self.lock().handler.is_some();
        let mut inbox = self.inbox();
        if inbox.is_emptied || inbox.is_empty() || !has_handler {
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
            let work = inbox.pop();
            let (Some(work), Some(handler)) = (work, handler) else {
                // Without a handler it is closed.
                inbox.is_emptied = false;
                return;
            };
            drop(inbox);
            if let Some(left) = self.work(work, &handler, Hurry::Now) {
                left.run();
            }
        }
    }

    /// Hands over work. Returns what is to be run when other work may be.
    fn work(
        self: &Arc<Self>,
        work: Work,
        handler: &Arc<dyn Handler>,
        hurry: Hurry,
    ) -> Option<Task> {
        match work {
            Work::Cancel(_, cancel, reason) => {
                cancel.cancel(reason);
                None
            }
            Work::Value {
                from,
                ticket,
                key,
                payload,
            } => {
                let (answer, left) = match handler.value(&from, key, payload) {
                    Ok(left) => (Ok(Reply::Done), left),
                    Err(error) => (Err(error), None),
                };
                self.reply_in(hurry, ticket.peer, ticket.call, &answer);
                left
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
                None
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
        self.reply_in(Hurry::Now, peer, call, outcome);
    }

    fn reply_in(&self, hurry: Hurry, peer: PeerId, call: CallId, outcome: &Outcome) {
        let answer = vec![bytes(codec::write_answer(outcome))];
        let mut state = self.lock();
        if let Some(own) = state.unanswered.get_mut(&peer) {
            own.len_bytes -= own.by_call.remove(&call).unwrap_or(0);
            if own.by_call.is_empty() {
                state.unanswered.remove(&peer);
            }
        }
        let Some(server) = &state.server else { return };
        let replied = match hurry {
            Hurry::Now => server.reply(peer, call, Ok(answer)),
            Hurry::Later => server.reply_later(peer, call, Ok(answer)),
        };
        if let Err(error) = replied {
            // It is too long.
            let short = codec::write_answer(&Err(error));
            drop(server.reply(peer, call, Ok(vec![bytes(short)])));
        }
    }
}

/// Returns where a client says that it listens, and which task its certificate says it is, if there are certificates.
fn read_client_name(name: &str, has_names: bool) -> Option<(Address, Option<ClusterTask>)> {
    let rest = name.strip_prefix(CLIENT)?;
    let (address, task) = match has_names {
        false => (rest, None),
        true => {
            let (address, task) = rest.rsplit_once(AS)?;
            (address, Some(crate::task::parse(task).ok()?))
        }
    };
    Some((Address::parse(address).ok()?, task))
}

fn read_stream_key(key: &[u8]) -> Option<(u64, usize)> {
    let (number, index) = key.split_first_chunk()?;
    let index = u32::from_le_bytes(index.try_into().ok()?);
    Some((u64::from_le_bytes(*number), index as usize))
}
