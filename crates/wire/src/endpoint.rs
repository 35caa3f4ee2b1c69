//! [`Endpoint`]: one task among others: its peers, and the connections to them, without input and output.
//!
//! A driver, such as `socket.rs` or a simulated network, opens and closes connections, moves bytes, and hands in times and
//! random numbers:
//!
//! | When | Call |
//! | --- | --- |
//! | a peer is to be dialled ([`Endpoint::to_dial`]), and was | [`Endpoint::dialed`], [`Endpoint::dial_failed`], or [`Endpoint::dial_refused`] |
//! | somebody has dialled | [`Endpoint::accepted`] |
//! | bytes come: they are put into [`Endpoint::space`] | [`Endpoint::filled`] |
//! | [`Endpoint::take_changed`] names a connection | [`Endpoint::next_frame`], until there is none |
//! | all of that is written and [`Endpoint::is_closing`] | the connection is closed, and [`Endpoint::cut`] called |
//! | a connection has broken | [`Endpoint::cut`] |
//! | [`Endpoint::next_deadline`] has come | [`Endpoint::tick`] |
//! | any of these was called | [`Endpoint::take_events`] |
//!
//! A handshake is `hello`, `welcome`, `ready`, `ready`; until it is done nothing of the peer changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tfrt_async::Error;

use crate::event::{CallId, Event, PeerState};
use crate::limits::Limits;
use crate::link::{Link, part};
use crate::message::{Failure, Nonce, Open, name_fault};
use crate::payload::{Landing, Outgoing, Part, len_bytes};
use crate::proof::Secret;

mod connection;
mod handshake;

pub use crate::link::Role;
use connection::Connection;

/// The number of a peer of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub(crate) usize);

/// The number of a connection, which is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// From where a connection comes, or where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This machine and the same user, by a Unix socket.
    SameUser,
    /// This machine, by its loopback network.
    Loopback,
    /// A network: only with certificates or a shared secret, and with checksums of values, which those that the kernel alone copies do
    /// without.
    Network,
}

/// The decision whether a value of a peer is taken, and into which memory. It is asked for while the endpoint is locked,
/// and must not call the endpoint.
pub trait Admission: Send + Sync + 'static {
    /// Returns memory for a value, as long as it will be.
    ///
    /// # Errors
    ///
    /// The reason for which the value is not taken, which the sender is told.
    fn admit(&self, peer: &str, context: u64, open: &Open) -> Result<Box<dyn Landing>, Error>;
}

/// The ways in which tasks may talk.
pub(crate) const THREE_WAYS: &str = "expected certificates, or a shared secret, or an address of this machine \
    alone (loopback, or a Unix socket of the same user)";

/// The reason for which nothing is understood of a peer in TLS.
const SPEAKS_TLS: &str = "it speaks TLS, for which this task has no certificates";

/// The most reasons for refusals that are kept until they are taken.
const MAX_REFUSALS: usize = 64;

/// A description of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of this task.
    pub name: String,
    /// The incarnation of this process: random, and not 0.
    pub incarnation: u128,
    /// The secret that all tasks share.
    pub secret: Option<Secret>,
    /// Whether a certificate names the task at the other end of each connection, which the driver
    /// [tells](Endpoint::authenticated) once it knows; then no secret is needed.
    pub has_certificates: bool,
    /// Whether tasks may join that nobody has named before.
    pub accepts_unknown: bool,
    /// The bounds.
    pub limits: Limits,
}

/// One task among others.
pub struct Endpoint {
    config: Config,
    admission: Arc<dyn Admission>,
    links: BTreeMap<PeerId, Link>,
    n_peers: usize,
    by_name: HashMap<String, PeerId>,
    dialing: BTreeMap<PeerId, Dialing>,
    connections: BTreeMap<ConnectionId, Connection>,
    n_connections: u64,
    changed: BTreeSet<ConnectionId>,
    events: Vec<(PeerId, Event)>,
    refusals: Vec<String>,
}

/// The attempts to reach a peer.
struct Dialing {
    /// When to try next; none while a connection is there or on its way.
    at: Option<Instant>,
    n_failed: u32,
}

impl Endpoint {
    /// Returns an endpoint without peers.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if name or incarnation are none.
    pub fn new(config: Config, admission: Arc<dyn Admission>) -> Result<Endpoint, Error> {
        check_name(&config.name)?;
        if config.incarnation == 0 {
            return Err(Error::invalid_argument(
                "expected an incarnation above 0, found 0",
            ));
        }
        Ok(Endpoint {
            config,
            admission,
            links: BTreeMap::new(),
            n_peers: 0,
            by_name: HashMap::new(),
            dialing: BTreeMap::new(),
            connections: BTreeMap::new(),
            n_connections: 0,
            changed: BTreeSet::new(),
            events: Vec::new(),
            refusals: Vec::new(),
        })
    }

    /// Adds a peer, by its name. Of two tasks, one dials and the other answers.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has no name, or that of this task; `AlreadyExists` if it is there.
    pub fn add_peer(&mut self, name: &str, role: Role, now: Instant) -> Result<PeerId, Error> {
        check_name(name)?;
        if name == self.config.name {
            return Err(Error::invalid_argument(format!(
                "expected the name of another task, found {name}"
            )));
        }
        if self.by_name.contains_key(name) {
            let message = format!("expected a new task, found {name}, which is there");
            return Err(Error::new(tfrt_async::ErrorCode::AlreadyExists, message));
        }
        Ok(self.insert(name, role, now))
    }

    fn insert(&mut self, name: &str, role: Role, now: Instant) -> PeerId {
        let peer = PeerId(self.n_peers);
        self.n_peers += 1;
        self.links
            .insert(peer, Link::new(name.to_owned(), role, now));
        self.by_name.insert(name.to_owned(), peer);
        if role == Role::Dials {
            let (at, n_failed) = (Some(now), 0);
            self.dialing.insert(peer, Dialing { at, n_failed });
        }
        peer
    }

    /// Removes a peer: all that waits for it fails, and it is dialled no more. Its number is never used again; what is
    /// asked of it is refused.
    pub fn remove_peer(&mut self, peer: PeerId) {
        let Some(mut link) = self.links.remove(&peer) else {
            return;
        };
        self.by_name.remove(&link.name);
        self.dialing.remove(&peer);
        let its = self.connections.iter_mut();
        let its = its.filter(|(_, connection)| connection.peer == Some(peer));
        let mut ids = Vec::new();
        for (id, connection) in its {
            connection.peer = None;
            ids.push(*id);
        }
        for id in ids {
            self.refuse(id, &Failure::left());
        }
        link.end_session("it was removed", PeerState::Lost);
        let events = link.events.drain(..).map(|event| (peer, event));
        self.events.extend(events);
    }

    /// Returns whether there are as many peers as may be.
    fn is_full(&self) -> bool {
        self.by_name.len() >= self.config.limits.max_connections
    }

    /// Returns the peer that has been lost longest of those that nobody has named, if there is one: its place may be
    /// another's. So names that somebody makes up fill no table for good.
    fn forgettable(&self) -> Option<PeerId> {
        let links = self.links.iter().filter(|(_, link)| link.is_forgettable());
        links
            .min_by_key(|(_, link)| link.heard_at)
            .map(|(peer, _)| *peer)
    }

    /// Returns the peer of a name.
    pub fn peer(&self, name: &str) -> Option<PeerId> {
        self.by_name.get(name).copied()
    }

    /// Returns all peers.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + use<> {
        self.links.keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// Returns the name of a peer; nothing of one that was removed.
    pub fn name(&self, peer: PeerId) -> &str {
        self.links.get(&peer).map_or("", |link| &link.name)
    }

    /// Returns the state of a peer. One that was removed is lost.
    pub fn state(&self, peer: PeerId) -> PeerState {
        self.links
            .get(&peer)
            .map_or(PeerState::Lost, |link| link.state)
    }

    /// Returns why a peer is not connected, or was not the last time.
    pub fn why(&self, peer: PeerId) -> &str {
        self.links
            .get(&peer)
            .map_or("it was removed", |link| &link.why)
    }

    /// Returns the incarnation of a peer that was met last.
    pub fn incarnation(&self, peer: PeerId) -> Option<u128> {
        self.links.get(&peer)?.incarnation
    }

    /// Returns the bounds.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns whether peers prove who they are, by certificates or a shared secret.
    pub fn is_protected(&self) -> bool {
        self.config.secret.is_some() || self.config.has_certificates
    }

    /// Returns how long the last sign of life took to a peer and back.
    pub fn round_trip(&self, peer: PeerId) -> Option<std::time::Duration> {
        self.links.get(&peer)?.round_trip
    }

    /// Returns the bytes that are held for a peer: messages that it has not acknowledged, and values on their way to us.
    pub fn held_bytes(&self, peer: PeerId) -> u64 {
        let link = self.links.get(&peer);
        link.map_or(0, |link| link.session.held_bytes())
    }

    /// Sends a request to a peer and returns its id. A [`Reply`](Event::Reply) or [`Failed`](Event::Failed) of this id
    /// follows, once, unless it is cancelled.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the peer is lost, `ResourceExhausted` if too much waits for it, `InvalidArgument` if the request
    /// is too long.
    pub fn request(
        &mut self,
        peer: PeerId,
        context: u64,
        body: Vec<Part>,
        now: Instant,
    ) -> Result<u64, Error> {
        let link = self.links.get_mut(&peer).ok_or_else(removed)?;
        check_message(&self.config, link, &body)?;
        link.check_reachable(now)?;
        let id = link.next_request + 1;
        let limits = &self.config.limits;
        link.session.request(id, context, body, limits)?;
        link.next_request = id;
        self.note(peer);
        Ok(id)
    }

    /// Answers a request of a peer. Returns whether the answer is still of use; it is not if the session is over.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the answer is too long; then the request is not answered.
    pub fn reply(
        &mut self,
        peer: PeerId,
        call: CallId,
        reply: Result<Vec<Part>, Error>,
    ) -> Result<bool, Error> {
        let Some(link) = self.links.get_mut(&peer) else {
            return Ok(false);
        };
        if let Ok(body) = &reply {
            check_message(&self.config, link, body)?;
        }
        let reply = reply.map_err(|error| Failure::from(&error));
        let is_of_use = link.session.epoch == call.epoch && link.session.reply(call.id, reply);
        self.note(peer);
        Ok(is_of_use)
    }

    /// Gives up requests to a peer: nothing follows for them, whatever the peer does.
    pub fn cancel(&mut self, peer: PeerId, ids: &[u64]) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.session.cancel(ids);
            self.note(peer);
        }
    }

    /// Sends a value to a peer and returns its id. [`Sent`](Event::Sent) or [`SendFailed`](Event::SendFailed) follows,
    /// once, unless it is aborted.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the peer is lost, `ResourceExhausted` if too much is on its way, `InvalidArgument` if key or name
    /// of the codec are too long.
    pub fn send(
        &mut self,
        peer: PeerId,
        context: u64,
        key: &[u8],
        codec: &str,
        parts: Vec<Part>,
        now: Instant,
    ) -> Result<u64, Error> {
        let too_long = |what: &str, most: usize, found: usize| {
            let message = format!("expected {what} of at most {most} bytes, found {found}");
            Err(Error::invalid_argument(message))
        };
        if key.len() > Open::MAX_KEY_BYTES {
            return too_long("a key", Open::MAX_KEY_BYTES, key.len());
        }
        if codec.len() > 1 << 10 {
            return too_long("a name of a codec", 1 << 10, codec.len());
        }
        let open = Open {
            key: key.to_vec(),
            codec: codec.to_owned(),
            total_bytes: len_bytes(&parts) as u64,
        };
        let link = self.links.get_mut(&peer).ok_or_else(removed)?;
        link.check_reachable(now)?;
        let stream = link.new_stream();
        let limits = &self.config.limits;
        link.session.send(stream, context, &open, parts, limits)?;
        self.note(peer);
        Ok(stream)
    }

    /// Gives up a value that is being sent: nothing follows for it. Returns whether it was on its way.
    pub fn abort(&mut self, peer: PeerId, stream: u64, why: &Error) -> bool {
        let Some(link) = self.links.get_mut(&peer) else {
            return false;
        };
        let was_known = link.session.abort(stream, &Failure::from(why));
        self.note(peer);
        was_known
    }

    /// Returns what has happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<(PeerId, Event)> {
        std::mem::take(&mut self.events)
    }

    /// Returns the connections that may have something to write, or are to be closed.
    pub fn take_changed(&mut self) -> BTreeSet<ConnectionId> {
        std::mem::take(&mut self.changed)
    }

    /// Returns the peers that are to be dialled now. Each is to be answered by [`dialed`](Self::dialed) or
    /// [`dial_failed`](Self::dial_failed).
    pub fn to_dial(&mut self, now: Instant) -> Vec<PeerId> {
        let mut peers = Vec::new();
        for (peer, dialing) in &mut self.dialing {
            if dialing.at.take_if(|at| *at <= now).is_some() {
                peers.push(*peer);
            }
        }
        peers
    }

    /// Hears that a peer can't be reached.
    pub fn dial_failed(&mut self, peer: PeerId, now: Instant, why: &str) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        if link.connection.is_none() {
            link.why = why.to_owned();
        }
        self.dial_later(peer, now);
    }

    /// Hears that nobody listens at the address of a peer: who was met there before has ended without a word.
    pub fn dial_refused(&mut self, peer: PeerId, now: Instant, why: &str) {
        self.dial_failed(peer, now, why);
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        if link.connection.is_none() && link.session.bound_to.is_some() {
            link.end_session(why, PeerState::Lost);
            self.note(peer);
        }
    }

    fn dial_later(&mut self, peer: PeerId, now: Instant) {
        let Some(dialing) = self.dialing.get_mut(&peer) else {
            return;
        };
        let wait = std::time::Duration::from_millis(50) * (1 << dialing.n_failed.min(10));
        let wait = match dialing.n_failed {
            0 => std::time::Duration::ZERO,
            _ => wait.min(self.config.limits.max_redial),
        };
        dialing.n_failed = dialing.n_failed.saturating_add(1);
        dialing.at = Some(now + wait);
    }

    /// Hears that a peer was dialled; `nonce` are new random bytes.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if the peer is on a network and there are neither certificates nor a secret, `Unavailable` if
    /// it was removed.
    pub fn dialed(
        &mut self,
        peer: PeerId,
        origin: Origin,
        nonce: Nonce,
        now: Instant,
    ) -> Result<ConnectionId, Error> {
        if let Err(error) = self.check_origin(origin) {
            self.dial_failed(peer, now, error.message());
            return Err(error);
        }
        let id = self.new_connection_id();
        let link = self.links.get(&peer).ok_or_else(removed)?;
        let mut connection = Connection::new(Some(peer), origin, now);
        connection.say_hello(&self.config, link, nonce);
        self.connections.insert(id, connection);
        self.changed.insert(id);
        Ok(id)
    }

    /// Hears that somebody has dialled; `nonce` are new random bytes.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if it comes from a network and there are neither certificates nor a secret, `ResourceExhausted`
    /// if there are too many connections.
    pub fn accepted(
        &mut self,
        origin: Origin,
        nonce: Nonce,
        now: Instant,
    ) -> Result<ConnectionId, Error> {
        let accepted = self.accept(origin, nonce, now);
        if let Err(error) = &accepted {
            self.note_refusal(error.message());
        }
        accepted
    }

    fn accept(
        &mut self,
        origin: Origin,
        nonce: Nonce,
        now: Instant,
    ) -> Result<ConnectionId, Error> {
        self.check_origin(origin)?;
        let limits = &self.config.limits;
        let is_full = |most: usize, found: usize, what: &str| {
            let message = format!("expected fewer than {most} {what}, found {found}");
            Err(Error::resource_exhausted(message))
        };
        let n = self.connections.len();
        if n >= limits.max_connections {
            return is_full(limits.max_connections, n, "connections");
        }
        let connections = self.connections.values();
        let n = connections.filter(|it| !it.is_live()).count();
        if n >= limits.max_handshakes {
            return is_full(limits.max_handshakes, n, "handshakes");
        }
        let id = self.new_connection_id();
        let mut connection = Connection::new(None, origin, now);
        connection.nonce = nonce;
        self.connections.insert(id, connection);
        Ok(id)
    }

    fn check_origin(&self, origin: Origin) -> Result<(), Error> {
        if origin == Origin::Network && !self.is_protected() {
            return Err(Error::new(
                tfrt_async::ErrorCode::PermissionDenied,
                format!("can't talk to other machines or users: {THREE_WAYS}, found none of them"),
            ));
        }
        Ok(())
    }

    /// Keeps why a connection was refused of which it was not known whose it is.
    fn note_refusal(&mut self, why: &str) {
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(why.to_owned());
        }
    }

    /// Returns why connections were refused since the last call, of which it was not known whose they are; of very many,
    /// the first.
    pub fn take_refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refusals)
    }

    fn new_connection_id(&mut self) -> ConnectionId {
        self.n_connections += 1;
        ConnectionId(self.n_connections)
    }

    /// Returns the next frame to write on a connection.
    pub fn next_frame(&mut self, id: ConnectionId, now: Instant) -> Option<Outgoing> {
        let connection = self.connections.get_mut(&id)?;
        if let Some(frame) = connection.queue.pop_front() {
            return Some(frame);
        }
        let link = self.links.get_mut(&connection.peer?)?;
        if connection.closing.is_some() || link.connection != Some(id) {
            return None;
        }
        // A ping that waited in vain for the socket is no measure of the way.
        let low = self.config.incarnation as u64;
        link.next(now, low, connection.sums_data)
    }

    /// Returns whether a connection is to be closed once all is written.
    pub fn is_closing(&self, id: ConnectionId) -> bool {
        let connection = self.connections.get(&id);
        connection.is_none_or(|connection| connection.closing.is_some())
    }

    /// Hears that a connection is gone.
    pub fn cut(&mut self, id: ConnectionId, now: Instant, why: &str) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        self.changed.remove(&id);
        let mut why = connection.closing.as_deref().unwrap_or(why);
        if !connection.is_live() && connection.has_tls_alert() {
            why = SPEAKS_TLS;
        }
        if !connection.is_live() && !connection.is_ours {
            self.note_refusal(why);
        }
        let Some(peer) = connection.peer else { return };
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        if link.connection == Some(id) {
            link.disconnected(why);
        } else if link.connection.is_none() && connection.is_ours {
            link.why = why.to_owned();
        }
        if connection.is_ours {
            self.dial_later(peer, now);
        }
        self.note(peer);
    }

    /// Lets time pass: signs of life, peers that are lost, handshakes that take too long.
    pub fn tick(&mut self, now: Instant) {
        let limits = &self.config.limits;
        let mut closing = Vec::new();
        for link in self.links.values_mut() {
            if let (Some(why), Some(id)) = (link.tick(now, limits), link.connection) {
                closing.push((id, why));
            }
        }
        for (id, connection) in &self.connections {
            let is_late = now >= connection.since + limits.hello_timeout;
            if is_late && !connection.is_live() && connection.closing.is_none() {
                let timeout = limits.hello_timeout;
                closing.push((*id, format!("the handshake took more than {timeout:?}")));
            }
        }
        for (id, why) in closing {
            self.close(id, why);
        }
        for peer in self.peers() {
            self.note(peer);
        }
    }

    /// Returns the time at which [`tick`](Self::tick) or [`to_dial`](Self::to_dial) has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        let limits = &self.config.limits;
        let links = self
            .links
            .values()
            .filter_map(|link| link.next_deadline(limits));
        let dials = self.dialing.values().filter_map(|dialing| dialing.at);
        let handshakes = self.connections.values();
        let handshakes = handshakes.filter(|it| !it.is_live() && it.closing.is_none());
        let handshakes = handshakes.map(|it| it.since + limits.hello_timeout);
        links.chain(dials).chain(handshakes).min()
    }

    /// Says to all peers that this task leaves: their sessions end at once. Connections are to be closed.
    pub fn leave(&mut self) {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        self.dialing.clear();
        for id in ids {
            self.refuse(id, &Failure::left());
        }
    }

    /// Closes a connection without a word.
    fn close(&mut self, id: ConnectionId, why: String) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.closing.get_or_insert(why);
            connection.queue.clear();
            self.changed.insert(id);
        }
    }

    /// Closes a connection and says why.
    fn refuse(&mut self, id: ConnectionId, failure: &Failure) {
        let low = self.config.incarnation as u64;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.say_bye(low, failure);
            self.changed.insert(id);
        }
    }

    /// Collects what has happened at a peer.
    fn note(&mut self, peer: PeerId) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let events = link.events.drain(..).map(|event| (peer, event));
        self.events.extend(events);
        self.changed.extend(link.connection);
    }
}

/// Returns the task that an endpoint's name stands for: the text behind its last ` as `, or all of it.
pub fn task_of(name: &str) -> &str {
    name.rsplit_once(" as ").map_or(name, |(_, task)| task)
}

fn removed() -> Error {
    Error::unavailable("the task was removed")
}

fn check_message(config: &Config, link: &Link, body: &[Part]) -> Result<(), Error> {
    let most = config.limits.max_message_bytes.min(link.max_message_bytes);
    let found = len_bytes(body);
    if found > most as usize {
        return Err(Error::invalid_argument(format!(
            "expected a message of at most {most} bytes, found {found}"
        )));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Error> {
    match name_fault(name) {
        Some(fault) => Err(Error::invalid_argument(fault)),
        None => Ok(()),
    }
}

/// Returns bytes as a part.
pub fn bytes(bytes: impl Into<Vec<u8>>) -> Part {
    part(bytes.into())
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peers = self.links.values().map(|link| (&link.name, link.state));
        f.debug_struct("Endpoint")
            .field("name", &self.config.name)
            .field("peers", &Vec::from_iter(peers))
            .finish_non_exhaustive()
    }
}
