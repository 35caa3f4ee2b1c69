//! [`Session`]: what two incarnations of tasks have between them: numbered frames, requests, values.
//!
//! A session outlives its connections. It ends when one of the two starts anew, or when the peer is silent for longer
//! than the lease; then everything that waits for it fails.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tfrt_async::Error;

use super::outbox::Outbox;
use super::streams::{Flow, Receiving, Senders, Sending};
use super::{Context, Fault};
use crate::event::{CallId, Event};
use crate::frame::{CHUNK_BYTES, FrameError, Header, Kind};
use crate::limits::Limits;
use crate::message::{self, Failure, MAX_STREAMS, Open, Ready};
use crate::payload::{Outgoing, Part, len_bytes};

/// A session with a peer.
pub struct Session {
    /// Its number; 0 while the peer, which dials, has not said it.
    pub number: u64,
    /// Which of this link's sessions it is.
    pub epoch: u64,
    /// The peer's incarnation that it is with; none before the first handshake.
    pub bound_to: Option<u128>,
    outbox: Outbox,
    /// The number of the last frame of the peer that was received in order.
    received: u64,
    /// The number that the peer was last told of.
    told: u64,
    ack_due: Option<Instant>,
    is_ack_due: bool,
    /// Our requests that are not answered, with the numbers of their frames.
    calls: BTreeMap<u64, u64>,
    /// The peer's requests that are not answered.
    serving: BTreeSet<u64>,
    last_request: u64,
    senders: Senders,
    receiving: BTreeMap<u64, Receiving>,
    last_stream: u64,
    admitted_bytes: u64,
    flow: Flow,
    credit_due: Option<u64>,
}

/// Where the payload of a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Into memory of its own.
    Own,
    /// Into that of a value, from this byte on.
    Landing {
        /// The stream of the value.
        stream: u64,
        /// The first byte.
        from: usize,
    },
    /// Nowhere: nobody wants it any more.
    Discard {
        /// Whether it counts among what the peer may send ahead.
        counts: bool,
    },
}

impl Session {
    /// Returns a session in which nothing has happened.
    pub fn new(number: u64, epoch: u64) -> Session {
        Session {
            number,
            epoch,
            bound_to: None,
            outbox: Outbox::default(),
            received: 0,
            told: 0,
            ack_due: None,
            is_ack_due: false,
            calls: BTreeMap::new(),
            serving: BTreeSet::new(),
            last_request: 0,
            senders: Senders::default(),
            receiving: BTreeMap::new(),
            last_stream: 0,
            admitted_bytes: 0,
            flow: Flow::default(),
            credit_due: None,
        }
    }

    /// Returns whether neither side has sent anything: then it can be had with another incarnation as well.
    pub fn is_untouched(&self) -> bool {
        self.outbox.is_untouched() && self.received == 0
    }

    /// Returns the bytes that are held for the peer: messages, and values that are being received.
    pub fn held_bytes(&self) -> u64 {
        self.outbox.len_bytes() as u64 + self.admitted_bytes
    }

    /// Returns why nothing more of this length can be sent now.
    fn is_full(&self, len_bytes: usize, limits: &Limits) -> bool {
        self.outbox.len_bytes() + len_bytes > limits.max_unacknowledged_bytes
            || self.outbox.len() >= Limits::MAX_UNACKNOWLEDGED / 2
    }

    /// Sends a request.
    pub fn request(
        &mut self,
        id: u64,
        context: u64,
        body: Vec<Part>,
        limits: &Limits,
    ) -> Result<(), Error> {
        if self.is_full(len_bytes(&body), limits) {
            let (n, bytes) = (self.outbox.len(), self.outbox.len_bytes());
            return Err(Error::resource_exhausted(format!(
                "expected fewer than {} bytes that the peer has not acknowledged, found {bytes} in {n} messages",
                limits.max_unacknowledged_bytes
            )));
        }
        let header = Header {
            context,
            stream: id,
            ..Header::new(Kind::Request)
        };
        let sequence = self.outbox.push(header, body);
        self.calls.insert(id, sequence);
        Ok(())
    }

    /// Sends a reply. Returns whether somebody waits for it.
    pub fn reply(&mut self, id: u64, reply: Result<Vec<Part>, Failure>) -> bool {
        if !self.serving.remove(&id) {
            return false;
        }
        self.answer(id, reply);
        true
    }

    fn answer(&mut self, id: u64, reply: Result<Vec<Part>, Failure>) {
        let (kind, parts) = match reply {
            Ok(parts) => (Kind::Reply, parts),
            Err(failure) => (Kind::Failure, vec![part(failure.encode())]),
        };
        let header = Header {
            stream: id,
            ..Header::new(kind)
        };
        self.outbox.push(header, parts);
    }

    /// Gives up requests: replies to them are dropped.
    pub fn cancel(&mut self, ids: &[u64]) {
        let known = |id: &u64| self.calls.remove(id).is_some();
        let known: Vec<u64> = ids.iter().copied().filter(known).collect();
        for ids in known.chunks(message::MAX_CANCELLED) {
            let parts = vec![part(message::encode_ids(ids))];
            self.outbox.push(Header::new(Kind::Cancel), parts);
        }
    }

    /// Sends a value.
    pub fn send(
        &mut self,
        stream: u64,
        context: u64,
        open: &Open,
        parts: Vec<Part>,
        limits: &Limits,
    ) -> Result<(), Error> {
        if self.senders.len() >= MAX_STREAMS || self.is_full(0, limits) {
            let n = self.senders.len();
            return Err(Error::resource_exhausted(format!(
                "expected fewer than {MAX_STREAMS} values on their way to the peer, found {n}"
            )));
        }
        let header = Header {
            context,
            stream,
            ..Header::new(Kind::Open)
        };
        let opened_by = self.outbox.push(header, vec![part(open.encode())]);
        let sending = Sending {
            parts,
            total: open.total_bytes,
            sent: 0,
            opened_by,
        };
        self.senders.insert(stream, sending);
        Ok(())
    }

    /// Gives up a value that is being sent. Returns whether it was.
    pub fn abort(&mut self, stream: u64, failure: &Failure) -> bool {
        let known = self.senders.remove(stream).is_some();
        if known {
            self.push_abort(stream, failure);
        }
        known
    }

    fn push_abort(&mut self, stream: u64, failure: &Failure) {
        let header = Header {
            stream,
            ..Header::new(Kind::Abort)
        };
        self.outbox.push(header, vec![part(failure.encode())]);
    }

    /// Returns what the peer is told when a connection begins.
    pub fn ready(&self) -> Ready {
        let streams = self.receiving.iter();
        Ready {
            proof: None,
            received: self.received,
            streams: streams.map(|(id, it)| (*id, it.received)).collect(),
        }
    }

    /// Goes on where the peer says it has been left.
    pub fn resume(&mut self, ready: &Ready, limits: &Limits) -> Result<(), Fault> {
        if !self.outbox.rewind(ready.received) {
            return Err(Fault::Violation(format!(
                "it says that it has received {} messages, which was not sent",
                ready.received
            )));
        }
        self.told = self.received;
        self.flow = Flow::default();
        self.credit_due = self.flow.grant(limits.credit());
        for (id, sending) in self.senders.iter_mut() {
            let found = ready.streams.iter().find(|(stream, _)| stream == id);
            sending.sent = match found {
                _ if sending.opened_by > ready.received => 0,
                Some((_, received)) if *received > sending.total => {
                    return Err(Fault::Violation(format!(
                        "it says that it has received {received} of {} bytes",
                        sending.total
                    )));
                }
                Some((_, received)) => *received,
                // It was complete or given up there, and a frame that says so is on its way.
                None => sending.total,
            };
        }
        Ok(())
    }

    /// Returns the next frame to write.
    pub fn next(&mut self, incarnation: u64, sums: bool) -> Option<Outgoing> {
        let plain = |kind, offset| {
            let header = Header {
                offset,
                incarnation,
                ..Header::new(kind)
            };
            Some(Outgoing::new(header, &[], 0..0, false))
        };
        if let Some(granted) = self.credit_due.take() {
            return plain(Kind::Credit, granted);
        }
        if let Some(frame) = self.outbox.next(self.received, incarnation) {
            self.tell();
            return Some(frame);
        }
        // At once where much has come; else when its time has come.
        if self.is_ack_due || self.received - self.told >= 32 {
            return plain(Kind::Ack, self.tell());
        }
        let outbox = &self.outbox;
        let is_open = |sequence| outbox.is_sent(sequence);
        self.senders
            .next(&mut self.flow, is_open, incarnation, sums)
    }

    /// Returns the number up to which frames have been received, which the peer is told now.
    pub fn tell(&mut self) -> u64 {
        self.told = self.received;
        self.ack_due = None;
        self.is_ack_due = false;
        self.received
    }

    /// Returns the time at which an acknowledgement is to be sent.
    pub fn ack_due(&self) -> Option<Instant> {
        self.ack_due
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Instant) {
        if self.ack_due.take_if(|due| *due <= now).is_some() {
            self.is_ack_due = true;
        }
    }

    /// Hears how far the peer has received.
    pub fn acknowledged(&mut self, number: u64) -> Result<(), Fault> {
        match self.outbox.acknowledge(number) {
            true => Ok(()),
            false => Err(Fault::Violation(format!(
                "it acknowledges message {number}, which was not sent"
            ))),
        }
    }

    /// Hears how far the peer lets us go.
    pub fn allowed(&mut self, bytes: u64) {
        self.flow.allowed = self.flow.allowed.max(bytes);
    }

    /// Takes a numbered frame.
    pub fn numbered(
        &mut self,
        header: &Header,
        payload: Vec<u8>,
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        self.acknowledged(header.offset)?;
        if header.sequence > self.received + 1 {
            return Err(Fault::Torn(format!(
                "expected message {}, found {}",
                self.received + 1,
                header.sequence
            )));
        }
        if !self.is_ack_due {
            let due = context.now + context.limits.ack_delay;
            self.ack_due.get_or_insert(due);
        }
        if header.sequence <= self.received {
            return Ok(());
        }
        self.received = header.sequence;
        match header.kind {
            Kind::Request => self.requested(header, payload, context)?,
            Kind::Reply => {
                let id = header.stream;
                if self.calls.remove(&id).is_some() {
                    context.events.push(Event::Reply { id, body: payload });
                }
            }
            Kind::Failure => {
                let failure = Failure::decode(header.kind, &payload)?;
                let id = header.stream;
                if self.calls.remove(&id).is_some() {
                    let (error, may_have_run) = (context.error(failure), true);
                    context.events.push(Event::Failed {
                        id,
                        error,
                        may_have_run,
                    });
                }
            }
            Kind::Cancel => {
                let ids = message::decode_ids(&payload)?;
                let is_serving = |id: &u64| self.serving.contains(id);
                let call = |id| CallId {
                    epoch: self.epoch,
                    id,
                };
                let calls = ids.into_iter().filter(is_serving).map(call);
                let calls: Vec<CallId> = calls.collect();
                if !calls.is_empty() {
                    context.events.push(Event::Cancelled(calls));
                }
            }
            Kind::Open => self.opened(header, &payload, context)?,
            Kind::Done => {
                if self.senders.remove(header.stream).is_some() {
                    context.events.push(Event::Sent(header.stream));
                }
            }
            _ => self.aborted(header, &payload, context)?,
        }
        if self.outbox.len() > Limits::MAX_UNACKNOWLEDGED {
            return Err(Fault::Violation(format!(
                "it does not acknowledge {} messages",
                self.outbox.len()
            )));
        }
        Ok(())
    }

    fn requested(
        &mut self,
        header: &Header,
        body: Vec<u8>,
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        let id = header.stream;
        if id <= self.last_request {
            return Err(Fault::Violation(format!(
                "expected a request above {}, found {id}",
                self.last_request
            )));
        }
        self.last_request = id;
        let limits = context.limits;
        let full = match self.serving.len() {
            n if n >= limits.max_requests => Some(format!(
                "expected fewer than {} requests at a time, found {n}",
                limits.max_requests
            )),
            _ if self.outbox.len_bytes() > limits.max_unacknowledged_bytes => Some(format!(
                "expected fewer than {} bytes of answers that are not acknowledged, found {}",
                limits.max_unacknowledged_bytes,
                self.outbox.len_bytes()
            )),
            _ => None,
        };
        if let Some(message) = full {
            let failure = Error::resource_exhausted(message);
            self.answer(id, Err(Failure::from(&failure)));
            return Ok(());
        }
        self.serving.insert(id);
        context.events.push(Event::Request {
            call: CallId {
                epoch: self.epoch,
                id,
            },
            context: header.context,
            body,
        });
        Ok(())
    }

    fn opened(
        &mut self,
        header: &Header,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        let open = Open::decode(payload)?;
        let stream = header.stream;
        if stream <= self.last_stream {
            return Err(Fault::Violation(format!(
                "expected a stream above {}, found {stream}",
                self.last_stream
            )));
        }
        self.last_stream = stream;
        let landing = self
            .has_room(&open, context.limits)
            .and_then(|()| context.admission.admit(context.peer, header.context, &open));
        let mut landing = match landing {
            Ok(landing) => landing,
            Err(error) => {
                self.push_abort(stream, &Failure::from(&error));
                return Ok(());
            }
        };
        let found = landing.bytes().len() as u64;
        if found != open.total_bytes {
            let error = Error::internal(format!(
                "expected memory of {} bytes for the value, found {found}",
                open.total_bytes
            ));
            self.push_abort(stream, &Failure::from(&error));
            return Ok(());
        }
        self.admitted_bytes += open.total_bytes;
        let receiving = Receiving {
            context: header.context,
            open,
            landing,
            received: 0,
        };
        self.receiving.insert(stream, receiving);
        if found == 0 {
            self.complete(stream, context);
        }
        Ok(())
    }

    fn has_room(&self, open: &Open, limits: &Limits) -> Result<(), Error> {
        let (n, found) = (self.receiving.len(), open.total_bytes);
        if n >= MAX_STREAMS {
            return Err(Error::resource_exhausted(format!(
                "expected fewer than {MAX_STREAMS} values at a time, found {n}"
            )));
        }
        let left = limits
            .max_admitted_bytes
            .saturating_sub(self.admitted_bytes);
        if found > left {
            return Err(Error::resource_exhausted(format!(
                "expected a value of at most {left} bytes, found {found}"
            )));
        }
        Ok(())
    }

    fn complete(&mut self, stream: u64, context: &mut Context<'_>) {
        let Some(done) = self.receiving.remove(&stream) else {
            return;
        };
        self.admitted_bytes -= done.open.total_bytes;
        let header = Header {
            stream,
            ..Header::new(Kind::Done)
        };
        self.outbox.push(header, Vec::new());
        context.events.push(Event::Value {
            context: done.context,
            key: done.open.key,
            codec: done.open.codec,
            value: done.landing,
        });
    }

    /// Hears that the peer gives up a value: one of ours that it does not take, or one of its own.
    fn aborted(
        &mut self,
        header: &Header,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        let error = context.error(Failure::decode(header.kind, payload)?);
        let stream = header.stream;
        if self.senders.remove(stream).is_some() {
            context.events.push(Event::SendFailed { stream, error });
        } else if let Some(gone) = self.receiving.remove(&stream) {
            self.admitted_bytes -= gone.open.total_bytes;
            context.events.push(Event::ValueFailed {
                context: gone.context,
                key: gone.open.key,
                error,
            });
        }
        Ok(())
    }

    /// Says where the payload of a data frame goes, before it is read.
    pub fn target(&self, header: &Header) -> Result<Target, Fault> {
        let len = u64::from(header.payload_len_bytes);
        let Some(receiving) = self.receiving.get(&header.stream) else {
            return match header.stream <= self.last_stream {
                true => self
                    .within_credit(len)
                    .map(|()| Target::Discard { counts: true }),
                false => Err(Fault::Violation(format!(
                    "expected bytes of a stream up to {}, found {}",
                    self.last_stream, header.stream
                ))),
            };
        };
        let total = receiving.open.total_bytes;
        let end = header.offset.checked_add(len).filter(|end| *end <= total);
        let Some(end) = end else {
            return Err(Fault::Violation(format!(
                "expected bytes below {total} of a value, found {len} from {}",
                header.offset
            )));
        };
        if end <= receiving.received {
            return Ok(Target::Discard { counts: false });
        }
        if header.offset != receiving.received {
            return Err(Fault::Torn(format!(
                "expected bytes from {} on, found some from {} on",
                receiving.received, header.offset
            )));
        }
        let chunk = CHUNK_BYTES as u64;
        let following = (total - end).div_ceil(chunk).min(u64::from(u32::MAX));
        if header.sequence != header.offset / chunk || u64::from(header.n_following) != following {
            return Err(Fault::Violation(format!(
                "expected frame {} with {following} to follow, found {} with {}",
                header.offset / chunk,
                header.sequence,
                header.n_following
            )));
        }
        self.within_credit(len)?;
        let from = usize::try_from(header.offset).expect("it is a place in memory");
        Ok(Target::Landing {
            stream: header.stream,
            from,
        })
    }

    fn within_credit(&self, len: u64) -> Result<(), Fault> {
        let left = self.flow.granted - self.flow.received;
        match len <= left {
            true => Ok(()),
            false => Err(Fault::Violation(format!(
                "expected at most {left} bytes of values ahead, found {len}"
            ))),
        }
    }

    /// Returns the memory of a value that is being received.
    pub fn landing(&mut self, stream: u64) -> Option<&mut [u8]> {
        let receiving = self.receiving.get_mut(&stream)?;
        Some(receiving.landing.bytes())
    }

    /// Counts bytes of values that have come, and completes the value if these were the last.
    pub fn landed(&mut self, header: &Header, target: Target, context: &mut Context<'_>) {
        let len = u64::from(header.payload_len_bytes);
        if target != (Target::Discard { counts: false }) {
            self.flow.received += len;
            if let Some(granted) = self.flow.grant(context.limits.credit()) {
                self.credit_due = Some(granted);
            }
        }
        let Target::Landing { stream, .. } = target else {
            return;
        };
        let Some(receiving) = self.receiving.get_mut(&stream) else {
            return;
        };
        receiving.received += len;
        if receiving.received == receiving.open.total_bytes {
            self.complete(stream, context);
        }
    }

    /// Ends the session: everything that waits fails.
    pub fn end(mut self, error: &Error, events: &mut Vec<Event>) {
        for (id, sequence) in std::mem::take(&mut self.calls) {
            events.push(Event::Failed {
                id,
                error: error.clone(),
                may_have_run: self.outbox.was_ever_sent(sequence),
            });
        }
        for stream in self.senders.take().into_keys() {
            let error = error.clone();
            events.push(Event::SendFailed { stream, error });
        }
        for gone in std::mem::take(&mut self.receiving).into_values() {
            events.push(Event::ValueFailed {
                context: gone.context,
                key: gone.open.key,
                error: error.clone(),
            });
        }
        let epoch = self.epoch;
        let served = std::mem::take(&mut self.serving);
        if !served.is_empty() {
            let calls = served.into_iter().map(|id| CallId { epoch, id });
            events.push(Event::Cancelled(calls.collect()));
        }
        events.push(Event::Ended(error.clone()));
    }
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Fault {
        Fault::Violation(error.to_string())
    }
}

/// Returns bytes of our own as a part.
pub fn part(bytes: Vec<u8>) -> Part {
    std::sync::Arc::new(bytes)
}
