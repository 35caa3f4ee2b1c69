//! [`Link`]: one peer: whether it lives, the session with it, and the connection that it goes over.

use std::collections::VecDeque;
use std::time::Instant;

use tfrt_async::Error;

use crate::endpoint::{Admission, ConnectionId};
use crate::event::{Event, PeerState};
use crate::frame::{Header, Kind};
use crate::limits::Limits;
use crate::message::{Failure, Hello};
use crate::payload::Outgoing;

mod outbox;
mod session;
mod streams;

pub use session::{Session, Target, part};

/// Things with which a frame is taken.
pub struct Context<'c> {
    /// The time.
    pub now: Instant,
    /// The bounds.
    pub limits: &'c Limits,
    /// The decision whether values are taken.
    pub admission: &'c dyn Admission,
    /// The name of the peer.
    pub peer: &'c str,
    /// Events, in order.
    pub events: &'c mut Vec<Event>,
}

impl Context<'_> {
    /// Returns an error of the peer's with its name.
    fn error(&self, failure: Failure) -> Error {
        let message = format!("task {}: {}", self.peer, failure.message);
        Error::new(failure.code, message)
    }
}

/// Why a connection can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something was lost or changed on its way: the session goes on by another connection.
    Torn(String),
    /// The peer does what it may not: the session is over.
    Violation(String),
}

/// Which side dials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This one.
    Dials,
    /// The peer.
    Answers,
}

/// The most incarnations of a peer that are remembered as gone.
const MAX_SUPERSEDED: usize = 16;

/// A peer.
pub struct Link {
    pub name: String,
    pub role: Role,
    /// Whether it has joined without having been named before.
    pub is_stranger: bool,
    pub state: PeerState,
    pub session: Session,
    /// The number of the last session that has begun.
    pub last_session: u64,
    /// The incarnation of the peer that was met last.
    pub incarnation: Option<u128>,
    /// Incarnations that a newer one has taken the place of.
    pub superseded: VecDeque<u128>,
    /// The connection whose handshake is done.
    pub connection: Option<ConnectionId>,
    /// The time at which something was last heard, or at which waiting began.
    pub heard_at: Instant,
    /// The time since which something waits for a peer that was not met.
    waiting_since: Option<Instant>,
    /// The reason for which the last connection ended or was refused.
    pub why: String,
    next_ping: Instant,
    n_pings: u64,
    ping_due: bool,
    pong_due: Option<u64>,
    pinged: Option<(u64, Instant)>,
    pub round_trip: Option<std::time::Duration>,
    /// The longest message that the peer takes.
    pub max_message_bytes: u32,
    pub events: Vec<Event>,
    pub next_request: u64,
    next_stream: u64,
}

impl Link {
    /// Returns a peer that was never met.
    pub fn new(name: String, role: Role, now: Instant) -> Link {
        let number = u64::from(role == Role::Dials);
        Link {
            name,
            role,
            is_stranger: false,
            state: PeerState::Connecting,
            session: Session::new(number, 1),
            last_session: 0,
            incarnation: None,
            superseded: VecDeque::new(),
            connection: None,
            heard_at: now,
            waiting_since: None,
            why: "it has not joined".to_owned(),
            next_ping: now,
            n_pings: 0,
            ping_due: false,
            pong_due: None,
            pinged: None,
            round_trip: None,
            max_message_bytes: u32::MAX,
            events: Vec::new(),
            next_request: 0,
            // The two sides never use the same ids.
            next_stream: u64::from(role == Role::Answers),
        }
    }

    /// Returns whether it may be forgotten: nobody has named it, it is lost, and nothing of it is left.
    pub fn is_forgettable(&self) -> bool {
        let is_over = self.connection.is_none() && self.session.bound_to.is_none();
        self.is_stranger && is_over && self.state == PeerState::Lost
    }

    /// Returns the error of all that waits for the peer.
    pub fn lost(&self, why: &str) -> Error {
        Error::unavailable(format!("task {} is lost: {why}", self.name))
    }

    /// Says whether something can be asked of the peer now.
    pub fn check_reachable(&mut self, now: Instant) -> Result<(), Error> {
        if self.state == PeerState::Lost && self.session.bound_to.is_none() {
            return Err(self.lost(&self.why));
        }
        self.waiting_since.get_or_insert(now);
        Ok(())
    }

    /// Returns an id for a stream.
    pub fn new_stream(&mut self) -> u64 {
        self.next_stream += 2;
        self.next_stream
    }

    fn set_state(&mut self, state: PeerState) {
        if self.state != state {
            self.state = state;
            self.events.push(Event::State(state));
        }
    }

    /// Returns the number of the session that a peer that dials is to have. Nothing changes until its proof is there.
    pub fn session_for(&self, hello: &Hello, own: u128) -> u64 {
        let is_other = hello.bound_to != 0 && hello.bound_to != own;
        match self.incarnation {
            _ if is_other => hello.session.saturating_add(1),
            Some(known) if known == hello.incarnation => {
                let is_alive = self.session.number == hello.session;
                match is_alive || hello.session > self.last_session {
                    true => hello.session,
                    false => self.last_session.saturating_add(1),
                }
            }
            _ => hello.session,
        }
    }

    /// Enters a session with this number, with this incarnation of the peer: goes on with the one that there is, or ends
    /// it and begins another.
    pub fn enter(&mut self, number: u64, incarnation: u128, now: Instant) {
        self.heard_at = self.heard_at.max(now);
        let is_same = self.session.number == number
            && self.session.bound_to.is_none_or(|it| it == incarnation);
        if !is_same && !self.session.is_untouched() {
            let why = match self.session.bound_to {
                Some(bound) if bound != incarnation => "it was started anew",
                _ => "it has given up the session",
            };
            self.end_session(why, PeerState::Connecting);
        }
        if let Some(old) = self.incarnation.filter(|old| *old != incarnation) {
            if self.superseded.len() == MAX_SUPERSEDED {
                self.superseded.pop_front();
            }
            self.superseded.push_back(old);
        }
        self.incarnation = Some(incarnation);
        self.session.number = number;
        self.session.bound_to = Some(incarnation);
        self.last_session = self.last_session.max(number);
    }

    /// Ends the session; what is asked from now on belongs to another.
    pub fn end_session(&mut self, why: &str, state: PeerState) {
        let number = match self.role {
            Role::Dials => self.session.number.saturating_add(1),
            Role::Answers => 0,
        };
        let fresh = Session::new(number, self.session.epoch + 1);
        let ended = std::mem::replace(&mut self.session, fresh);
        let error = self.lost(why);
        self.why = why.to_owned();
        self.waiting_since = None;
        self.set_state(state);
        ended.end(&error, &mut self.events);
    }

    /// Hears that the handshake of a connection is done.
    pub fn connected(&mut self, connection: ConnectionId, now: Instant, limits: &Limits) {
        self.connection = Some(connection);
        self.waiting_since = None;
        self.heard_at = now;
        self.next_ping = now + limits.heartbeat;
        self.ping_due = false;
        self.pong_due = None;
        self.pinged = None;
        self.set_state(PeerState::Live);
    }

    /// Hears that the connection is gone.
    pub fn disconnected(&mut self, why: &str) {
        self.connection = None;
        self.why = why.to_owned();
        if self.state == PeerState::Live {
            self.set_state(PeerState::Suspect);
        }
    }

    /// Hears that something came from the peer.
    pub fn heard(&mut self, now: Instant) {
        self.heard_at = self.heard_at.max(now);
        if self.connection.is_some() {
            self.set_state(PeerState::Live);
        }
    }

    /// Takes a frame that is no data.
    pub fn receive(
        &mut self,
        header: &Header,
        payload: Vec<u8>,
        now: Instant,
        limits: &Limits,
        admission: &dyn Admission,
    ) -> Result<(), Fault> {
        match header.kind {
            Kind::Ping => {
                self.pong_due = Some(header.sequence);
                return self.session.acknowledged(header.offset);
            }
            Kind::Pong => {
                if let Some((_, at)) = self.pinged.take_if(|(n, _)| *n == header.sequence) {
                    self.round_trip = Some(now.saturating_duration_since(at));
                }
                return self.session.acknowledged(header.offset);
            }
            Kind::Ack => return self.session.acknowledged(header.offset),
            Kind::Credit => {
                self.session.allowed(header.offset);
                return Ok(());
            }
            _ => {}
        }
        let mut context = Context {
            now,
            limits,
            admission,
            peer: &self.name,
            events: &mut self.events,
        };
        self.session.numbered(header, payload, &mut context)
    }

    /// Counts the bytes of a value that were read.
    pub fn landed(
        &mut self,
        header: &Header,
        target: Target,
        now: Instant,
        limits: &Limits,
        admission: &dyn Admission,
    ) {
        let mut context = Context {
            now,
            limits,
            admission,
            peer: &self.name,
            events: &mut self.events,
        };
        self.session.landed(header, target, &mut context);
    }

    /// Returns the next frame to write on the connection.
    pub fn next(&mut self, now: Instant, incarnation: u64, sums: bool) -> Option<Outgoing> {
        let received = |session: &mut Session, kind, sequence| {
            let header = Header {
                sequence,
                incarnation,
                offset: session.tell(),
                ..Header::new(kind)
            };
            Some(Outgoing::new(header, &[], 0..0, false))
        };
        if let Some(number) = self.pong_due.take() {
            return received(&mut self.session, Kind::Pong, number);
        }
        if std::mem::take(&mut self.ping_due) {
            self.n_pings += 1;
            self.pinged = Some((self.n_pings, now));
            return received(&mut self.session, Kind::Ping, self.n_pings);
        }
        self.session.next(incarnation, sums)
    }

    /// Lets time pass. Returns why the connection is to be cut.
    pub fn tick(&mut self, now: Instant, limits: &Limits) -> Option<String> {
        let silence = now.saturating_duration_since(self.heard_at);
        if self.connection.is_some() {
            self.session.tick(now);
            if now >= self.next_ping {
                self.ping_due = true;
                self.next_ping = now + limits.heartbeat;
            }
            if silence >= limits.lost_after() {
                self.set_state(PeerState::Lost);
                return Some(format!("nothing was heard for {silence:?}"));
            }
            if silence >= limits.suspect_after() {
                self.set_state(PeerState::Suspect);
            }
            return None;
        }
        match self.state {
            PeerState::Suspect if silence >= limits.lost_after() => {
                self.set_state(PeerState::Lost);
            }
            PeerState::Connecting => {
                let waited = self
                    .waiting_since
                    .map(|at| now.saturating_duration_since(at));
                if waited.is_some_and(|waited| waited >= limits.join_timeout) {
                    let why = format!("{} within {:?}", self.why, limits.join_timeout);
                    self.end_session(&why, PeerState::Lost);
                }
            }
            _ => {}
        }
        let is_silent = matches!(self.state, PeerState::Suspect | PeerState::Lost);
        if is_silent && self.session.bound_to.is_some() && silence >= limits.lease {
            let why = self.why.clone();
            self.end_session(&why, PeerState::Lost);
        }
        None
    }

    /// Returns the time at which [`tick`](Self::tick) has something to do.
    pub fn next_deadline(&self, limits: &Limits) -> Option<Instant> {
        if self.connection.is_some() {
            let silence = match self.state {
                PeerState::Live => limits.suspect_after(),
                _ => limits.lost_after(),
            };
            let due = self.next_ping.min(self.heard_at + silence);
            return Some(self.session.ack_due().map_or(due, |ack| ack.min(due)));
        }
        let has_begun = self.session.bound_to.is_some();
        match self.state {
            PeerState::Suspect => Some(self.heard_at + limits.lost_after().min(limits.lease)),
            PeerState::Lost if has_begun => Some(self.heard_at + limits.lease),
            PeerState::Connecting => self.waiting_since.map(|at| at + limits.join_timeout),
            _ => None,
        }
    }
}
