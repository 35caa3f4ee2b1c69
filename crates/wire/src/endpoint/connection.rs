//! [`Connection`]: bytes of one connection on their way to frames: what is read next goes where it belongs.

use std::collections::VecDeque;
use std::time::Instant;

use crate::frame::{FrameError, FrameLimits, HEADER_BYTES, Header, Kind};
use crate::limits::Limits;
use crate::link::{Link, Session, Target};
use crate::message::{Failure, Hello, Nonce, Ready, Welcome};
use crate::payload::Outgoing;

use super::{Config, ConnectionId, Endpoint, Origin, PeerId};
use crate::link::Fault;

/// The bytes that are read ahead of what is known to come: short messages come in one piece.
const STAGE_BYTES: usize = 8 << 10;

/// A connection.
pub struct Connection {
    /// The peer: known from the beginning to who dials, by its hello to who answers.
    pub peer: Option<PeerId>,
    /// Whether this side has dialled.
    pub is_ours: bool,
    pub origin: Origin,
    pub since: Instant,
    pub phase: Phase,
    pub nonce: Nonce,
    pub hello: Option<Hello>,
    pub welcome: Option<Welcome>,
    /// The task that the certificate of the other end names.
    pub certified: Option<String>,
    /// Frames of the handshake, and the last one.
    pub queue: VecDeque<Outgoing>,
    /// Why it is to be closed.
    pub closing: Option<String>,
    /// Whether payloads of values have checksums.
    pub sums_data: bool,
    stage: Box<[u8]>,
    // Invariant: `begin <= end <= stage.len()`; the bytes between are read and not looked at.
    begin: usize,
    end: usize,
    receiving: Option<Receiving>,
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The answering side waits for the hello.
    Hello,
    /// The dialling side waits for the welcome.
    Welcome,
    /// Each waits for the other's ready.
    Ready,
    /// It is done.
    Live,
}

/// A frame whose payload is being read.
struct Receiving {
    header: Header,
    target: Target,
    /// The payload, if it has memory of its own.
    own: Vec<u8>,
    done: usize,
    crc: u32,
}

impl Receiving {
    fn left(&self) -> usize {
        self.header.payload_len_bytes as usize - self.done
    }

    /// Returns where the next bytes go; nothing if they are dropped.
    fn rest<'r>(&'r mut self, session: Option<&'r mut Session>) -> Option<&'r mut [u8]> {
        let (done, len) = (self.done, self.header.payload_len_bytes as usize);
        match self.target {
            Target::Own => Some(&mut self.own[done..]),
            Target::Landing { stream, from } => {
                let landing = session?.landing(stream)?;
                landing.get_mut(from + done..from + len)
            }
            Target::Discard { .. } => None,
        }
    }
}

impl Connection {
    /// Returns a connection on which nothing was said.
    pub fn new(peer: Option<PeerId>, origin: Origin, now: Instant) -> Connection {
        Connection {
            peer,
            is_ours: peer.is_some(),
            origin,
            since: now,
            phase: match peer {
                Some(_) => Phase::Welcome,
                None => Phase::Hello,
            },
            nonce: [0; 32],
            hello: None,
            welcome: None,
            certified: None,
            queue: VecDeque::new(),
            closing: None,
            sums_data: true,
            stage: vec![0; STAGE_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            receiving: None,
        }
    }

    /// Returns whether the handshake is done.
    pub fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// Queues a frame of the handshake.
    pub fn say(&mut self, kind: Kind, incarnation: u64, message: Vec<u8>) {
        let header = Header {
            incarnation,
            ..Header::new(kind)
        };
        let range = 0..message.len();
        let parts = [super::bytes(message)];
        self.queue
            .push_back(Outgoing::new(header, &parts, range, true));
    }

    /// Queues the hello.
    pub fn say_hello(&mut self, config: &Config, link: &Link, nonce: Nonce) {
        self.nonce = nonce;
        // TLS has checks of its own.
        self.sums_data = self.origin == Origin::Network && !config.has_certificates;
        let hello = Hello {
            from: config.name.clone(),
            to: link.name.clone(),
            incarnation: config.incarnation,
            session: link.session.number,
            bound_to: link.session.bound_to.unwrap_or(0),
            nonce,
            max_message_bytes: config.limits.max_message_bytes,
            has_secret: config.secret.is_some(),
            sums_data: self.sums_data,
        };
        self.say(Kind::Hello, config.incarnation as u64, hello.encode());
        self.hello = Some(hello);
    }

    /// Queues this side's ready.
    pub fn say_ready(&mut self, config: &Config, link: &Link, proof: Option<[u8; 32]>) {
        let ready = Ready {
            proof,
            ..link.session.ready()
        };
        self.say(Kind::Ready, config.incarnation as u64, ready.encode());
    }

    /// Queues the last frame; what was not written before is not written.
    pub fn say_bye(&mut self, incarnation: u64, failure: &Failure) {
        if self.closing.is_some() {
            return;
        }
        self.queue.clear();
        self.say(Kind::Bye, incarnation, failure.encode());
        self.closing = Some(failure.message.clone());
    }

    /// Returns whether what has come, and is no frame, begins as an alert of TLS.
    pub fn has_tls_alert(&self) -> bool {
        self.receiving.is_none() && self.stage[self.begin..self.end].starts_with(&[21, 3])
    }

    /// Takes up to `n` bytes from the stage.
    fn staged(&mut self, n: usize) -> std::ops::Range<usize> {
        let from = self.begin;
        self.begin = self.end.min(from + n);
        from..self.begin
    }

    fn begin_frame(&mut self, header: Header, target: Target) {
        let own = match target {
            Target::Own => vec![0; header.payload_len_bytes as usize],
            _ => Vec::new(),
        };
        self.receiving = Some(Receiving {
            header,
            target,
            own,
            done: 0,
            crc: 0,
        });
    }
}

impl Endpoint {
    /// Returns where the next bytes of a connection are to be put: first all of the one slice, then the other. Both are
    /// empty if nothing is to be read.
    pub fn space(&mut self, id: ConnectionId) -> [&mut [u8]; 2] {
        let Some(connection) = self.connections.get_mut(&id) else {
            return [&mut [], &mut []];
        };
        let (begin, end) = (connection.begin, connection.end);
        connection.stage.copy_within(begin..end, 0);
        (connection.begin, connection.end) = (0, end - begin);
        let stage = &mut connection.stage[end - begin..];
        if connection.closing.is_some() {
            return [&mut [], &mut []];
        }
        let link = connection.peer.and_then(|peer| self.links.get_mut(&peer));
        let session = link.map(|link| &mut link.session);
        let receiving = connection.receiving.as_mut();
        let rest = receiving.and_then(|receiving| receiving.rest(session));
        [rest.unwrap_or_default(), stage]
    }

    /// Takes the bytes that were put into the slices of [`space`](Self::space).
    pub fn filled(&mut self, id: ConnectionId, n_bytes: usize, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.closing.is_some() {
            return;
        }
        let peer = connection.peer;
        if let Some(link) = peer.and_then(|peer| self.links.get_mut(&peer))
            && link.connection == Some(id)
        {
            link.heard(now);
        }
        if let Err(fault) = self.take(id, n_bytes, now) {
            self.fail(id, fault);
        }
        // The peer may be known only now.
        let connection = self.connections.get(&id);
        if let Some(peer) = connection.and_then(|connection| connection.peer) {
            self.note(peer);
        }
    }

    fn take(&mut self, id: ConnectionId, n_bytes: usize, now: Instant) -> Result<(), Fault> {
        let limits = self.config.limits.clone();
        let mut n_new = n_bytes;
        loop {
            let Some(connection) = self.connections.get_mut(&id) else {
                return Ok(());
            };
            if connection.closing.is_some() {
                return Ok(());
            }
            let peer = connection.peer;
            let session = peer
                .and_then(|peer| self.links.get_mut(&peer))
                .map(|link| &mut link.session);
            let Some(mut receiving) = connection.receiving.take() else {
                // What came went into the stage.
                connection.end += std::mem::take(&mut n_new);
                if connection.end - connection.begin < HEADER_BYTES {
                    return Ok(());
                }
                let range = connection.staged(HEADER_BYTES);
                let head = connection.stage[range].try_into();
                let head: &[u8; HEADER_BYTES] = head.expect("it is as long as that");
                let header = decode(head, connection.phase, &limits)?;
                let target = self.begin(id, &header)?;
                let Some(connection) = self.connections.get_mut(&id) else {
                    return Ok(());
                };
                connection.begin_frame(header, target);
                continue;
            };
            let sums = receiving.header.kind != Kind::Data || connection.sums_data;
            let (left, mut crc) = (receiving.left(), receiving.crc);
            if let Some(rest) = receiving.rest(session) {
                // Bytes that were read into place; then those that had been read ahead.
                let direct = n_new.min(left);
                if sums {
                    crc = crc32c::crc32c_append(crc, &rest[..direct]);
                }
                n_new -= direct;
                connection.end += std::mem::take(&mut n_new);
                let range = connection.staged(left - direct);
                let staged = range.len();
                rest[direct..direct + staged].copy_from_slice(&connection.stage[range.clone()]);
                if sums {
                    crc = crc32c::crc32c_append(crc, &connection.stage[range]);
                }
                (receiving.done, receiving.crc) = (receiving.done + direct + staged, crc);
            } else {
                connection.end += std::mem::take(&mut n_new);
                let range = connection.staged(left);
                receiving.done += range.len();
                receiving.crc = crc32c::crc32c_append(receiving.crc, &connection.stage[range]);
            }
            if receiving.left() > 0 {
                connection.receiving = Some(receiving);
                return Ok(());
            }
            self.finish(id, receiving, now, &limits)?;
        }
    }

    /// Says where the payload of a frame goes.
    fn begin(&mut self, id: ConnectionId, header: &Header) -> Result<Target, Fault> {
        let connection = &self.connections[&id];
        let is_live = connection.is_live();
        if header.kind.is_of_handshake() {
            return Ok(Target::Own);
        }
        let link = connection.peer.and_then(|peer| self.links.get(&peer));
        let Some(link) = link.filter(|_| is_live) else {
            let kind = header.kind;
            return Err(Fault::Violation(format!(
                "expected a handshake, found a frame '{kind}'"
            )));
        };
        let known = link.incarnation.map(|known| known as u64);
        if known != Some(header.incarnation) {
            return Err(Fault::Violation(format!(
                "expected frames of the incarnation {:#x}, found {:#x}: it is stale",
                known.unwrap_or_default(),
                header.incarnation
            )));
        }
        if link.connection != Some(id) {
            return Err(Fault::Torn("another connection has taken its place".into()));
        }
        match header.kind {
            Kind::Data => link.session.target(header),
            _ => Ok(Target::Own),
        }
    }

    fn finish(
        &mut self,
        id: ConnectionId,
        receiving: Receiving,
        now: Instant,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let header = receiving.header;
        let connection = &self.connections[&id];
        let is_summed = header.kind != Kind::Data || connection.sums_data;
        let is_discarded = matches!(receiving.target, Target::Discard { .. });
        if is_summed && !is_discarded && receiving.crc != header.payload_crc {
            let error = FrameError::PayloadChecksum {
                kind: header.kind,
                expected: header.payload_crc,
                found: receiving.crc,
            };
            return Err(Fault::Torn(error.to_string()));
        }
        if header.kind.is_of_handshake() {
            return self.shake(id, &header, &receiving.own, now);
        }
        let link = connection.peer.and_then(|peer| self.links.get_mut(&peer));
        let Some(link) = link else {
            return Ok(());
        };
        let admission = &*self.admission;
        if header.kind == Kind::Data {
            link.landed(&header, receiving.target, now, limits, admission);
            return Ok(());
        }
        link.receive(&header, receiving.own, now, limits, admission)
    }
}

fn decode(head: &[u8; HEADER_BYTES], phase: Phase, limits: &Limits) -> Result<Header, Fault> {
    // Before a peer is known, no more than a handshake takes.
    let max_message_bytes = match phase {
        Phase::Live => limits.max_message_bytes,
        _ => 0,
    };
    let header = Header::decode(head, FrameLimits { max_message_bytes });
    header.map_err(|error| match (&error, phase) {
        // Behind a checksum that is right, it is meant; and who begins with another version means that as well.
        (FrameError::Magic([22, 3, ..]), Phase::Hello) => Fault::Torn(super::SPEAKS_TLS.to_owned()),
        (FrameError::Magic(_) | FrameError::HeaderChecksum { .. }, _)
        | (FrameError::Version(_), Phase::Live) => Fault::Torn(error.to_string()),
        _ => Fault::Violation(error.to_string()),
    })
}
