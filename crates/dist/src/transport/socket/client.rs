//! The side that asks: calls from their beginning to their answer, and peers that are lost.

use std::sync::Arc;
use std::time::Instant;

use tfrt_async::queue::Task;
use tfrt_async::{AsyncValue, ClusterTask, Error, ErrorCode};
use tfrt_wire::endpoint::{PeerId, bytes};
use tfrt_wire::event::{self, Event};
use tfrt_wire::{payload, socket};

use super::codec::{self, Part, Said};
use super::{
    Asked, CODEC, Call, INLINE_BYTES, Inner, Link, MAX_MESSAGE_BYTES, PATIENCE, PendingCall,
    RETRY_AFTER, Sent, State, Stops, endpoint_name,
};
use crate::cluster::Address;
use crate::ids::{Incarnation, TaskHandle};
use crate::message::Reply;
use crate::transport::{Bounds, Caller, Phase, lost, lost_after};

impl Inner {
    pub(super) fn ask(
        self: &Arc<Self>,
        peer: TaskHandle,
        asked: Asked,
        bounds: Bounds,
    ) -> AsyncValue<Reply> {
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
        let call = Call {
            pending: PendingCall::new(promise, peer, known.task.clone(), &asked),
            asked,
            deadline: bounds.deadline,
            patient_until: Instant::now() + PATIENCE,
            retries: bounds.max_retries,
            may_wait: bounds.may_wait,
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
        let inner = Arc::downgrade(self);
        let stops = Stops::new(&self.host, bounds, move |reason| {
            if let Some(inner) = inner.upgrade() {
                inner.give_up(number, reason);
            }
        });
        let mut state = self.lock();
        match state.calls.get_mut(&number) {
            Some(call) => call.pending.set_stops(stops),
            None => {
                // It was answered before.
                drop(state);
                stops.end();
            }
        }
    }

    /// Ends a call without an answer, and tells the peer to stop.
    fn give_up(self: &Arc<Self>, number: u64, reason: Option<Error>) {
        let mut state = self.lock();
        let Some(Call { pending: call, .. }) = state.calls.remove(&number) else {
            return;
        };
        let reason = reason.unwrap_or_else(|| call.timed_out());
        let is_first = call.was_sent && state.cancels.is_empty();
        if call.was_sent {
            state.cancels.push((call.peer, number, reason.clone()));
        }
        drop(state);
        if is_first {
            let inner = Arc::downgrade(self);
            self.host.queue().add_task(Task::new(move || {
                if let Some(inner) = inner.upgrade() {
                    inner.lock().tell_all_cancelled();
                }
            }));
        }
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
        let pending = &mut call.pending;
        pending.was_sent = false;
        let is_lost = error.code() == ErrorCode::Unavailable;
        let may_matter = may_have_run && pending.may_matter;
        let peer = peers.get_mut(&pending.peer);
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
        let peer = call.and_then(|call| state.peers.get(&call.pending.peer));
        let address = peer.map_or_else(String::new, |peer| peer.address.to_string());
        let link = peer.and_then(|peer| peer.link.as_ref().ok());
        let client = state.client.as_ref().zip(link);
        let why = client.map_or_else(String::new, |(client, link)| client.why(*link));
        let call = state.calls.remove(&number);
        drop(state);
        let Some(Call { pending: call, .. }) = call else {
            return;
        };
        let task = &call.task;
        let error = match (is_lost, may_matter, was_met) {
            (false, ..) => error.with_task(task.clone()),
            (true, true, _) => lost_after(task, call.name),
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
    pub(super) fn told_as_client(self: &Arc<Self>, peer: PeerId, event: Event) {
        match event {
            Event::State(event::PeerState::Live) => self.lock().met(peer),
            Event::Reply { id, body } => {
                let mut state = self.lock();
                let number = state.requests.remove(&(peer, id));
                let call = number.and_then(|number| state.calls.remove(&number));
                let Some(Call { pending: call, .. }) = call else {
                    return;
                };
                let incarnation = state.links.get(&peer).and_then(|link| link.incarnation);
                if let Some(known) = state.peers.get_mut(&call.peer)
                    && known.phase != Phase::Lost
                {
                    known.phase = Phase::Live;
                    known.incarnation = known.incarnation.or(incarnation);
                }
                drop(state);
                let answer = codec::read_answer(&body).and_then(|answer| answer);
                socket::lasting(|| call.complete(answer));
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
                let Some((number, Call { pending: call, .. })) = call else {
                    return;
                };
                state.tell_cancelled(call.peer, vec![number], &error);
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
                    if known.is_at(peer) && known.incarnation == Some(incarnation) {
                        known.phase = Phase::Lost;
                        task = Some(known.task.clone());
                    }
                }
                // Whom nobody knows any more is not dialled again.
                state.hang_up(peer);
                drop(state);
                let certified = self.caller.task.as_ref().and(task.clone());
                let caller = Caller {
                    address,
                    incarnation,
                    task: certified,
                };
                self.tell_lost(&caller, task);
            }
            _ => (),
        }
    }

    pub(super) fn tell_lost(&self, caller: &Caller, task: Option<ClusterTask>) {
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
        let peer = self.peers.get(&call.pending.peer);
        let (Some(peer), Some(client)) = (peer, &self.client) else {
            return Err(lost(&call.pending.task));
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
        let said = codec::write(&said);
        if said.len() > MAX_MESSAGE_BYTES as usize {
            let (name, found) = (call.pending.name, said.len());
            return Err(Error::invalid_argument(format!(
                "expected a {name} of at most {MAX_MESSAGE_BYTES} bytes, found {found}"
            )));
        }
        let body = vec![bytes(said)];
        let id = match call.may_wait {
            true => client.request_later(link, context, body)?,
            false => client.request(link, context, body)?,
        };
        call.pending.was_sent = true;
        let peer = call.pending.peer;
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
                    self.tell_cancelled(peer, vec![number], &error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Tells peers which requests were given up, those of one peer and one reason together.
    fn tell_all_cancelled(&mut self) {
        let mut left = std::mem::take(&mut self.cancels);
        while let Some((peer, _, reason)) = left.first().cloned() {
            let is_of = |(to, _, why): &(TaskHandle, u64, Error)| *to == peer && why.same(&reason);
            let numbers = left.extract_if(.., |cancel| is_of(cancel));
            let numbers = numbers.map(|(_, number, _)| number).collect();
            self.tell_cancelled(peer, numbers, &reason);
        }
    }

    /// Tells a peer that requests were given up.
    fn tell_cancelled(&self, peer: TaskHandle, numbers: Vec<u64>, reason: &Error) {
        let link = self
            .peers
            .get(&peer)
            .and_then(|peer| peer.link.as_ref().ok());
        if let (Some(link), Some(client)) = (link, &self.client) {
            let reason = reason.clone();
            let said = codec::write(&Said::Cancel { numbers, reason });
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
            if known.is_at(peer) && known.phase != Phase::Lost {
                known.incarnation = known.incarnation.or(incarnation);
            }
        }
    }

    /// Dials an address, if nobody has yet.
    pub(super) fn dial(
        &mut self,
        address: &Address,
        task: Option<&ClusterTask>,
        place: socket::Address,
    ) -> Result<PeerId, Error> {
        let closed = || Error::cancelled("this task has ended");
        let client = self.client.as_ref().ok_or_else(closed)?;
        let name = endpoint_name(address, task);
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

    /// Dials an address no more, if nobody is known there and nobody answers: one that answers may still have contexts
    /// together with this task, to which an end of the connection would be a loss.
    pub(super) fn hang_up(&mut self, link: PeerId) {
        if self.peers.values().any(|peer| peer.is_at(link)) {
            return;
        }
        if let Some(client) = &self.client
            && !matches!(
                client.state(link),
                event::PeerState::Live | event::PeerState::Suspect
            )
        {
            self.links.remove(&link);
            client.remove_peer(link);
        }
    }

    pub(super) fn take_calls_to(&mut self, peer: TaskHandle) -> Vec<Call> {
        let numbers = self
            .calls
            .iter()
            .filter(|(_, call)| call.pending.peer == peer);
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
