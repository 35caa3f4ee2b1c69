//! [`Sockets`]: an [`Endpoint`] on Unix and TCP sockets.
//!
//! One thread waits for all sockets of an endpoint by `epoll`, however many peers there are, and sleeps while nothing
//! comes; it calls the [`Handler`] for what it has read. If [`lasting`] work of a call takes more than some milliseconds,
//! another thread reads in its place (`readers.rs`). Who sends something writes it on its own thread as far as the socket has room, so that a
//! short message wakes nobody; the rest is the reader's. Bytes of values are read into the memory that was admitted for
//! them, and written from where they are.
//!
//! An executor of futures would bring its threads and its own timers for what is one loop here.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::rand::{GetRandomFlags, getrandom};
use tfrt_async::Error;

use crate::endpoint::{Admission, Config, Endpoint, PeerId, Role};
use crate::event::{CallId, Event, PeerState};
use crate::message::Nonce;
use crate::payload::Part;

mod address;
mod open;
mod readers;
mod turn;

pub use address::Address;
use readers::Readers;
pub use readers::{is_lasting, lasting};
use turn::{Inner, Shared};

/// The receiver of events: requests, answers, values, peers that come and go. Its functions are called on the thread that
/// reads, one after the other, in the order in which events happen. Work that is mostly short may be done there as
/// [`lasting`]: where it takes long, another thread goes on after 5 to 10 ms. A panic costs its event alone.
pub trait Handler: Send + Sync + 'static {
    /// Takes what has happened at a peer.
    fn event(&self, peer: PeerId, event: Event);

    /// Hears why a connection was refused before it was known whose it is.
    fn refused(&self, why: &str) {
        let _ = why;
    }
}

impl<F: Fn(PeerId, Event) + Send + Sync + 'static> Handler for F {
    fn event(&self, peer: PeerId, event: Event) {
        self(peer, event);
    }
}

/// A task among others, on sockets. Dropping it says to all peers that it leaves.
pub struct Sockets {
    shared: Arc<Shared>,
}

/// Returns a new incarnation.
///
/// # Errors
///
/// `Internal` if the system has no random numbers.
pub fn new_incarnation() -> Result<u128, Error> {
    let bytes: Nonce = random()?;
    let half: [u8; 16] = std::array::from_fn(|index| bytes[index]);
    Ok(u128::from_le_bytes(half).max(1))
}

pub(crate) fn random() -> Result<Nonce, Error> {
    let mut bytes = [0; 32];
    match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
        Ok(32) => Ok(bytes),
        Ok(n) => Err(Error::internal(format!(
            "expected 32 random bytes, found {n}"
        ))),
        Err(error) => Err(Error::internal(format!("no random numbers: {error}"))),
    }
}

impl Sockets {
    /// Starts an endpoint, which listens nowhere and knows nobody.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` as [`Endpoint::new`], `Unavailable` if the system refuses a thread or descriptors.
    pub fn start(
        config: Config,
        admission: Arc<dyn Admission>,
        handler: Arc<dyn Handler>,
    ) -> Result<Sockets, Error> {
        Sockets::start_inner(config, admission, handler, |_| ())
    }

    /// Starts an endpoint all of whose connections are in TLS. Both ends of each prove by certificates that their names
    /// are theirs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); `InvalidArgument` if the certificate is of another task than the one that the
    /// endpoint's name [stands for](crate::endpoint::task_of).
    #[cfg(feature = "tls")]
    pub fn start_tls(
        config: Config,
        tls: &crate::tls::Tls,
        admission: Arc<dyn Admission>,
        handler: Arc<dyn Handler>,
    ) -> Result<Sockets, Error> {
        let task = crate::endpoint::task_of(&config.name);
        if task != tls.task() {
            let found = tls.task();
            return Err(Error::invalid_argument(format!(
                "expected a certificate of {task}, found one of {found}"
            )));
        }
        let config = Config {
            has_certificates: true,
            ..config
        };
        Sockets::start_inner(config, admission, handler, |inner| {
            inner.tls = Some(tls.clone());
        })
    }

    fn start_inner(
        config: Config,
        admission: Arc<dyn Admission>,
        handler: Arc<dyn Handler>,
        prepare: impl FnOnce(&mut Inner),
    ) -> Result<Sockets, Error> {
        let refused = |error: io::Error| {
            Error::unavailable(format!("the system refuses what sockets need: {error}"))
        };
        let endpoint = Endpoint::new(config, admission)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let epoll = epoll.map_err(|error| refused(error.into()))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|error| refused(error.into()))?;
        epoll::add(
            &epoll,
            &wake,
            epoll::EventData::new_u64(turn::WAKE),
            epoll::EventFlags::IN,
        )
        .map_err(|error| refused(error.into()))?;
        let mut inner = Inner::new(endpoint);
        prepare(&mut inner);
        let inner = Mutex::new(inner);
        let shared = Arc::new(Shared {
            inner,
            epoll,
            wake,
            handler,
            readers: Arc::new(Readers::default()),
            threads: Mutex::default(),
        });
        let sockets = Sockets { shared };
        sockets.shared.start_thread(Some(0)).map_err(refused)?;
        sockets.shared.start_thread(None).map_err(refused)?;
        Ok(sockets)
    }

    /// Listens at an address, and returns it with its port.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if others than this machine can reach it and there are neither certificates nor a secret,
    /// `Unavailable` if the system refuses it.
    pub fn listen(&self, address: &Address) -> Result<Address, Error> {
        let mut inner = self.shared.lock();
        open::check_listener(address, inner.endpoint.is_protected())?;
        let (fd, address) = open::listener(address)?;
        inner.add_listener(&self.shared.epoll, fd, &address)?;
        Ok(address)
    }

    /// Adds a peer: one with an address is dialled, one without dials.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::add_peer`].
    pub fn add_peer(&self, name: &str, address: Option<Address>) -> Result<PeerId, Error> {
        let mut inner = self.shared.lock();
        let role = match address {
            Some(_) => Role::Dials,
            None => Role::Answers,
        };
        let peer = inner.endpoint.add_peer(name, role, Instant::now())?;
        inner
            .addresses
            .extend(address.map(|address| (peer, address)));
        self.shared.flushed(inner);
        Ok(peer)
    }

    /// Removes a peer, as [`Endpoint::remove_peer`]: it is dialled no more.
    pub fn remove_peer(&self, peer: PeerId) {
        let mut inner = self.shared.lock();
        inner.endpoint.remove_peer(peer);
        inner.addresses.remove(&peer);
        self.shared.flushed(inner);
    }

    /// Returns the peer of a name.
    pub fn peer(&self, name: &str) -> Option<PeerId> {
        self.shared.lock().endpoint.peer(name)
    }

    /// Returns the name of a peer.
    pub fn name(&self, peer: PeerId) -> String {
        self.shared.lock().endpoint.name(peer).to_owned()
    }

    /// Returns the state of a peer.
    pub fn state(&self, peer: PeerId) -> PeerState {
        self.shared.lock().endpoint.state(peer)
    }

    /// Returns why a peer is not connected, or was not the last time.
    pub fn why(&self, peer: PeerId) -> String {
        self.shared.lock().endpoint.why(peer).to_owned()
    }

    /// Returns the incarnation of a peer that was met last.
    pub fn incarnation(&self, peer: PeerId) -> Option<u128> {
        self.shared.lock().endpoint.incarnation(peer)
    }

    /// Returns how long the last sign of life took to a peer and back.
    pub fn round_trip(&self, peer: PeerId) -> Option<Duration> {
        self.shared.lock().endpoint.round_trip(peer)
    }

    /// Sends a request, as [`Endpoint::request`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn request(&self, peer: PeerId, context: u64, body: Vec<Part>) -> Result<u64, Error> {
        let mut inner = self.shared.lock();
        let id = inner
            .endpoint
            .request(peer, context, body, Instant::now())?;
        self.shared.flushed(inner);
        Ok(id)
    }

    /// Sends a request as [`request`](Self::request), within a millisecond, together with what else is sent to the peer until
    /// then.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn request_later(&self, peer: PeerId, context: u64, body: Vec<Part>) -> Result<u64, Error> {
        let mut inner = self.shared.lock();
        let now = Instant::now();
        let id = inner.endpoint.request(peer, context, body, now)?;
        inner.write_later(now);
        self.shared.flushed(inner);
        Ok(id)
    }

    /// Answers a request, as [`Endpoint::reply`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reply(
        &self,
        peer: PeerId,
        call: CallId,
        reply: Result<Vec<Part>, Error>,
    ) -> Result<bool, Error> {
        let mut inner = self.shared.lock();
        let is_of_use = inner.endpoint.reply(peer, call, reply)?;
        self.shared.flushed(inner);
        Ok(is_of_use)
    }

    /// Answers a request as [`reply`](Self::reply), within a millisecond: what is answered until then goes together, or with
    /// what else is sent to the peer. For answers that nobody is in a hurry for.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reply_later(
        &self,
        peer: PeerId,
        call: CallId,
        reply: Result<Vec<Part>, Error>,
    ) -> Result<bool, Error> {
        let mut inner = self.shared.lock();
        let is_of_use = inner.endpoint.reply(peer, call, reply)?;
        inner.write_later(Instant::now());
        self.shared.flushed(inner);
        Ok(is_of_use)
    }

    /// Gives up requests, as [`Endpoint::cancel`].
    pub fn cancel(&self, peer: PeerId, ids: &[u64]) {
        let mut inner = self.shared.lock();
        inner.endpoint.cancel(peer, ids);
        self.shared.flushed(inner);
    }

    /// Sends a value, as [`Endpoint::send`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn send(
        &self,
        peer: PeerId,
        context: u64,
        key: &[u8],
        codec: &str,
        parts: Vec<Part>,
    ) -> Result<u64, Error> {
        let mut inner = self.shared.lock();
        let now = Instant::now();
        let stream = inner.endpoint.send(peer, context, key, codec, parts, now)?;
        self.shared.flushed(inner);
        Ok(stream)
    }

    /// Gives up a value, as [`Endpoint::abort`].
    pub fn abort(&self, peer: PeerId, stream: u64, why: &Error) -> bool {
        let mut inner = self.shared.lock();
        let was_known = inner.endpoint.abort(peer, stream, why);
        self.shared.flushed(inner);
        was_known
    }

    /// Breaks the connection to a peer, as a network does: what was on its way is sent again. For tests.
    pub fn break_connection(&self, peer: PeerId) {
        let mut inner = self.shared.lock();
        inner.break_connection(peer);
        drop(inner);
        self.shared.wake();
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        inner.endpoint.leave();
        inner.is_stopped = true;
        drop(inner);
        self.shared.wake();
        // The handler may hold the last handle.
        let own = std::thread::current().id();
        while let Some(thread) = self.shared.take_thread() {
            let id = thread.thread().id();
            if id == own {
                return;
            }
            drop(thread.join());
        }
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panics with it has asked for what does not exist, and changed nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
