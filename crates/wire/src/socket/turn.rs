//! The loop of the thread that reads: a turn takes what has come, writes what can be written, dials, closes,
//! and hands over what has happened.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, sendmsg, shutdown, sockopt};
use tfrt_async::Error;

use super::readers::{Happened, Next, Readers};
use super::{Address, Handler, open, random};
use crate::endpoint::{ConnectionId, Endpoint, PeerId};
use crate::payload::Outgoing;

#[cfg(feature = "tls")]
mod tls;

/// The token of the descriptor that wakes the thread.
pub(super) const WAKE: u64 = 0;

/// The most bytes of one connection in a turn, so that others have theirs.
const TURN_BYTES: usize = 4 << 20;

/// The most bytes that a thread writes that sends something.
const OWN_BYTES: usize = 1 << 20;

/// The most frames, and about the most slices, that are written together.
const MAX_FRAMES: usize = 16;

/// The time for which what is in no hurry waits for company.
const UNHURRIED: Duration = Duration::from_millis(1);

/// The time for which a connection that is closed may still read what was said last.
const LINGER: Duration = Duration::from_millis(500);

/// The most of those.
const MAX_LINGERING: usize = 64;

/// The time for which nothing is accepted after the system has refused it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The endpoint and its sockets, shared by the thread that waits and those that send.
pub struct Shared {
    pub inner: Mutex<Inner>,
    pub epoll: OwnedFd,
    pub wake: OwnedFd,
    pub handler: Arc<dyn Handler>,
    pub readers: Arc<Readers>,
    /// The threads that have not ended.
    pub threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Everything that is locked together.
pub struct Inner {
    pub endpoint: Endpoint,
    pub addresses: HashMap<PeerId, Address>,
    pub is_stopped: bool,
    things: HashMap<u64, Thing>,
    tokens: HashMap<ConnectionId, u64>,
    n_tokens: u64,
    n_lingering: usize,
    /// Connections that the thread is to look at: they are broken, or to be closed.
    later: BTreeSet<ConnectionId>,
    broken: HashMap<ConnectionId, String>,
    /// Connections with something to write that is in no hurry, and when it is written.
    unhurried: BTreeSet<ConnectionId>,
    unhurried_due: Option<Instant>,
    /// Connections that can't go on, whose peers are to read why.
    failed: HashMap<ConnectionId, String>,
    #[cfg(feature = "tls")]
    pub tls: Option<crate::tls::Tls>,
    /// Memory for bytes in TLS.
    #[cfg(feature = "tls")]
    scratch: Vec<u8>,
    /// Until when the thread sleeps.
    sleeps_until: Option<Instant>,
    is_asleep: bool,
}

/// A descriptor that the thread waits for.
enum Thing {
    Listener {
        fd: OwnedFd,
        /// The file to remove with it.
        path: Option<PathBuf>,
        paused_until: Option<Instant>,
    },
    Dial {
        fd: OwnedFd,
        peer: PeerId,
        since: Instant,
    },
    Connection(Socket),
    /// A connection that is over, whose peer may still read.
    Lingering {
        fd: OwnedFd,
        until: Instant,
    },
}

struct Socket {
    fd: OwnedFd,
    id: ConnectionId,
    peer: Option<PeerId>,
    /// Frames that are being written, and the bytes of the first that are.
    frames: VecDeque<Outgoing>,
    written: usize,
    waits_for_room: bool,
    #[cfg(feature = "tls")]
    channel: Option<Box<tls::Channel>>,
}

impl Inner {
    /// Returns an endpoint without sockets.
    pub fn new(endpoint: Endpoint) -> Inner {
        Inner {
            endpoint,
            addresses: HashMap::new(),
            is_stopped: false,
            things: HashMap::new(),
            tokens: HashMap::new(),
            n_tokens: WAKE,
            n_lingering: 0,
            later: BTreeSet::new(),
            broken: HashMap::new(),
            unhurried: BTreeSet::new(),
            unhurried_due: None,
            failed: HashMap::new(),
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "tls")]
            scratch: Vec::new(),
            sleeps_until: None,
            is_asleep: false,
        }
    }

    /// Removes the files of Unix sockets that listened.
    fn remove_paths(&mut self) {
        for thing in std::mem::take(&mut self.things).into_values() {
            if let Thing::Listener {
                path: Some(path), ..
            } = thing
            {
                let _ = rustix::fs::unlink(path);
            }
        }
    }

    fn token(&mut self) -> u64 {
        self.n_tokens += 1;
        self.n_tokens
    }

    /// Adds a socket that listens.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the system refuses to wait for it.
    pub fn add_listener(
        &mut self,
        epoll: &OwnedFd,
        fd: OwnedFd,
        address: &Address,
    ) -> Result<(), Error> {
        let token = self.token();
        epoll::add(epoll, &fd, EventData::new_u64(token), EventFlags::IN)
            .map_err(|error| Error::unavailable(format!("can't listen at {address}: {error}")))?;
        let path = match address {
            Address::Unix(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        };
        let paused_until = None;
        let listener = Thing::Listener {
            fd,
            path,
            paused_until,
        };
        self.things.insert(token, listener);
        Ok(())
    }

    /// Marks the connection of a peer as broken.
    pub fn break_connection(&mut self, peer: PeerId) {
        for thing in self.things.values() {
            if let Thing::Connection(socket) = thing
                && socket.peer == Some(peer)
            {
                let why = "it was broken".to_owned();
                self.broken.insert(socket.id, why);
            }
        }
    }

    /// Dials a peer.
    fn dial(&mut self, epoll: &OwnedFd, peer: PeerId, now: Instant) {
        let Some(address) = self.addresses.get(&peer) else {
            return;
        };
        let address = address.clone();
        let token = self.token();
        let dialed = open::dial(&address).and_then(|(fd, is_connected)| {
            if !is_connected {
                epoll::add(epoll, &fd, EventData::new_u64(token), EventFlags::OUT)?;
            }
            Ok((fd, is_connected))
        });
        match dialed {
            Ok((fd, true)) => self.adopt(epoll, fd, Some(peer), now),
            Ok((fd, false)) => {
                let since = now;
                self.things.insert(token, Thing::Dial { fd, peer, since });
            }
            Err(error) => {
                self.not_dialed(peer, error, now);
            }
        }
    }

    /// Hears that a socket that was dialled is connected, or not.
    fn dialed(&mut self, epoll: &OwnedFd, fd: OwnedFd, peer: PeerId, now: Instant) {
        let error = match sockopt::socket_error(&fd) {
            Ok(Ok(())) => {
                let _ = epoll::delete(epoll, &fd);
                return self.adopt(epoll, fd, Some(peer), now);
            }
            Ok(Err(error)) | Err(error) => error,
        };
        self.not_dialed(peer, error, now);
    }

    /// Hears why a peer was not reached. A socket that refuses, or is not there, says that its process is gone.
    fn not_dialed(&mut self, peer: PeerId, error: Errno, now: Instant) {
        let address = self.addresses.get(&peer);
        let name = address.map_or_else(String::new, Address::to_string);
        let why = format!("can't dial {name}: {error}");
        let is_path = matches!(address, Some(Address::Unix(_)));
        match error {
            Errno::CONNREFUSED => self.endpoint.dial_refused(peer, now, &why),
            Errno::NOENT if is_path => self.endpoint.dial_refused(peer, now, &why),
            _ => self.endpoint.dial_failed(peer, now, &why),
        }
    }

    /// Takes a connection. One that is refused is closed.
    fn adopt(&mut self, epoll: &OwnedFd, fd: OwnedFd, peer: Option<PeerId>, now: Instant) {
        let origin = open::origin(&fd).map_err(|error| Error::unavailable(error.to_string()));
        let known = origin.and_then(|origin| Ok((origin, random()?)));
        let id = match (known, peer) {
            (Ok((origin, nonce)), Some(peer)) => {
                self.endpoint.dialed(peer, origin, nonce, now).ok()
            }
            (Ok((origin, nonce)), None) => self.endpoint.accepted(origin, nonce, now).ok(),
            (Err(error), Some(peer)) => {
                self.endpoint.dial_failed(peer, now, error.message());
                None
            }
            (Err(_), None) => None,
        };
        let Some(id) = id else { return };
        #[cfg(feature = "tls")]
        let channel = {
            let tls = self.tls.as_ref();
            match tls
                .map(|tls| tls::Channel::new(tls, peer.is_some()))
                .transpose()
            {
                Ok(channel) => channel.map(Box::new),
                Err(why) => return self.endpoint.cut(id, now, &why),
            }
        };
        let token = self.token();
        if let Err(error) = epoll::add(epoll, &fd, EventData::new_u64(token), EventFlags::IN) {
            self.endpoint.cut(id, now, &error.to_string());
            return;
        }
        self.tokens.insert(id, token);
        let socket = Socket {
            fd,
            id,
            peer,
            frames: VecDeque::new(),
            written: 0,
            waits_for_room: false,
            #[cfg(feature = "tls")]
            channel,
        };
        self.things.insert(token, Thing::Connection(socket));
    }

    /// Takes the connections of a listener, and leaves it alone for a time if the system refuses them: else it would be
    /// told of them again and again.
    fn accept(&mut self, epoll: &OwnedFd, token: u64, now: Instant) {
        loop {
            let Some(Thing::Listener {
                fd, paused_until, ..
            }) = self.things.get_mut(&token)
            else {
                return;
            };
            match open::accept(fd) {
                Ok(Some(connection)) => self.adopt(epoll, connection, None, now),
                Ok(None) => return,
                Err(_) => {
                    *paused_until = Some(now + ACCEPT_PAUSE);
                    let data = EventData::new_u64(token);
                    let _ = epoll::modify(epoll, fd, data, EventFlags::empty());
                    return;
                }
            }
        }
    }

    /// Reads what has come on a connection.
    fn read(&mut self, epoll: &OwnedFd, token: u64, now: Instant) {
        let Some(Thing::Connection(socket)) = self.things.get(&token) else {
            return;
        };
        #[cfg(feature = "tls")]
        if socket.channel.is_some() {
            return self.read_tls(epoll, token, now);
        }
        #[cfg(not(feature = "tls"))]
        let _ = epoll;
        let id = socket.id;
        let mut n_read = 0;
        while n_read < TURN_BYTES {
            let [first, second] = self.endpoint.space(id);
            let capacity = first.len() + second.len();
            if capacity == 0 {
                return;
            }
            let mut slices = [IoSliceMut::new(first), IoSliceMut::new(second)];
            let from = usize::from(slices[0].is_empty());
            let why = match rustix::io::readv(&socket.fd, &mut slices[from..]) {
                Ok(0) => "it has closed the connection".to_owned(),
                Ok(n) => {
                    self.endpoint.filled(id, n, now);
                    n_read += n;
                    if n < capacity {
                        return;
                    }
                    continue;
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(error) => error.to_string(),
            };
            self.broken.insert(id, why);
            return;
        }
    }

    /// Writes frames of a connection while there is room, up to about so many bytes.
    fn write(&mut self, epoll: &OwnedFd, id: ConnectionId, now: Instant, most: usize) {
        let token = self.tokens.get(&id);
        let Some((token, Thing::Connection(socket))) =
            token.and_then(|token| Some((*token, self.things.get_mut(token)?)))
        else {
            return;
        };
        #[cfg(feature = "tls")]
        if socket.channel.is_some() {
            return self.write_tls(epoll, id, now, most);
        }
        let mut n_written = 0;
        let is_waiting = loop {
            while socket.frames.len() < MAX_FRAMES {
                let Some(frame) = self.endpoint.next_frame(id, now) else {
                    break;
                };
                let len = frame.len_bytes();
                socket.frames.push_back(frame);
                if len >= OWN_BYTES {
                    break;
                }
            }
            if socket.frames.is_empty() {
                break false;
            }
            if n_written >= most {
                break true;
            }
            match socket.write_once() {
                Ok(n) => n_written += n,
                Err(Errno::AGAIN) => break true,
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.broken.insert(id, error.to_string());
                    return;
                }
            }
        };
        self.wait_for_room(epoll, token, is_waiting);
    }

    /// Waits for a socket to take more, or waits no more.
    fn wait_for_room(&mut self, epoll: &OwnedFd, token: u64, is_waiting: bool) {
        let Some(Thing::Connection(socket)) = self.things.get_mut(&token) else {
            return;
        };
        if socket.waits_for_room == is_waiting {
            return;
        }
        socket.waits_for_room = is_waiting;
        let flags = match is_waiting {
            true => EventFlags::IN | EventFlags::OUT,
            false => EventFlags::IN,
        };
        let data = EventData::new_u64(token);
        if let Err(error) = epoll::modify(epoll, &socket.fd, data, flags) {
            self.broken.insert(socket.id, error.to_string());
        }
    }

    /// Leaves what has changed to be written soon, together with what comes until then.
    pub fn write_later(&mut self, now: Instant) {
        self.unhurried.extend(self.endpoint.take_changed());
        self.unhurried_due.get_or_insert(now + UNHURRIED);
    }

    /// Returns when something is to be done.
    fn next_deadline(&self) -> Option<Instant> {
        let due = self.endpoint.next_deadline();
        due.into_iter().chain(self.unhurried_due).min()
    }

    /// Writes what has changed.
    fn flush(&mut self, epoll: &OwnedFd, now: Instant, most: usize) {
        if self.unhurried_due.take_if(|due| *due <= now).is_some() {
            for id in std::mem::take(&mut self.unhurried) {
                self.write(epoll, id, now, most);
            }
        }
        for id in self.endpoint.take_changed() {
            self.write(epoll, id, now, most);
            if self.endpoint.is_closing(id) {
                self.later.insert(id);
            }
        }
    }

    /// Closes connections that are over or broken.
    fn close(&mut self, epoll: &OwnedFd, now: Instant) {
        let closing = std::mem::take(&mut self.later).into_iter();
        let closing = closing.map(|id| (id, "it was closed".to_owned(), true));
        let broken = std::mem::take(&mut self.broken).into_iter();
        let broken = broken.map(|(id, why)| (id, why, false));
        let failed = std::mem::take(&mut self.failed).into_iter();
        let failed = failed.map(|(id, why)| (id, why, true));
        let all = failed.chain(closing).chain(broken);
        for (id, why, is_said) in all.collect::<Vec<_>>() {
            self.endpoint.cut(id, now, &why);
            let thing = self
                .tokens
                .remove(&id)
                .map(|token| (token, self.things.remove(&token)));
            let Some((token, Some(Thing::Connection(socket)))) = thing else {
                continue;
            };
            let is_open = is_said && self.n_lingering < MAX_LINGERING;
            if is_open && shutdown(&socket.fd, Shutdown::Write).is_ok() {
                // A socket that is closed with bytes unread takes back what it has said.
                let data = EventData::new_u64(token);
                let _ = epoll::modify(epoll, &socket.fd, data, EventFlags::IN);
                let (fd, until) = (socket.fd, now + LINGER);
                self.n_lingering += 1;
                self.things.insert(token, Thing::Lingering { fd, until });
            }
        }
    }

    fn forget(&mut self, token: u64) -> Option<Thing> {
        let thing = self.things.remove(&token);
        if let Some(Thing::Lingering { .. }) = thing {
            self.n_lingering -= 1;
        }
        thing
    }

    /// Ends what has taken too long, and returns when the next of these is to be looked at.
    fn expire(&mut self, epoll: &OwnedFd, now: Instant) -> Option<Instant> {
        let timeout = self.endpoint.limits().hello_timeout;
        let (mut over, mut next) = (Vec::new(), None);
        for (token, thing) in &mut self.things {
            let end = match thing {
                Thing::Dial { since, .. } => *since + timeout,
                Thing::Lingering { until, .. } => *until,
                Thing::Listener {
                    fd, paused_until, ..
                } => match *paused_until {
                    Some(until) if until <= now => {
                        *paused_until = None;
                        let data = EventData::new_u64(*token);
                        let _ = epoll::modify(epoll, fd, data, EventFlags::IN);
                        continue;
                    }
                    Some(until) => until,
                    None => continue,
                },
                Thing::Connection(_) => continue,
            };
            match end <= now {
                true => over.push(*token),
                false => next = Some(next.map_or(end, |next: Instant| next.min(end))),
            }
        }
        for token in over {
            if let Some(Thing::Dial { peer, .. }) = self.forget(token) {
                let why = format!("nobody has answered within {timeout:?}");
                self.endpoint.dial_failed(peer, now, &why);
            }
        }
        next
    }

    /// Takes what a descriptor is ready for.
    fn ready(&mut self, epoll: &OwnedFd, token: u64, flags: EventFlags, now: Instant) {
        match self.things.get(&token) {
            Some(Thing::Listener { .. }) => self.accept(epoll, token, now),
            Some(Thing::Dial { .. }) => {
                if let Some(Thing::Dial { fd, peer, .. }) = self.forget(token) {
                    self.dialed(epoll, fd, peer, now);
                }
            }
            Some(Thing::Connection(socket)) => {
                let id = socket.id;
                if flags.contains(EventFlags::OUT) {
                    self.write(epoll, id, now, TURN_BYTES);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.read(epoll, token, now);
                }
            }
            Some(Thing::Lingering { fd, .. }) => {
                let mut dropped = [0; 4_096];
                let read = rustix::io::read(fd, &mut dropped);
                if !matches!(read, Ok(1..) | Err(Errno::AGAIN | Errno::INTR)) {
                    self.forget(token);
                }
            }
            None => {}
        }
    }
}

impl Socket {
    /// Writes as much as the socket takes at once.
    fn write_once(&mut self) -> Result<usize, Errno> {
        let slices = gather(&self.frames, self.written);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let n = sendmsg(
            &self.fd,
            &slices,
            &mut SendAncillaryBuffer::default(),
            flags,
        )?;
        drop(slices);
        advance(&mut self.frames, &mut self.written, n);
        Ok(n)
    }
}

/// Returns the bytes of frames that are to be written next, of the first of which some are.
fn gather(frames: &VecDeque<Outgoing>, written: usize) -> Vec<IoSlice<'_>> {
    let mut slices = Vec::with_capacity(2 * MAX_FRAMES);
    let mut skip = written;
    for frame in frames {
        frame.slices(std::mem::take(&mut skip), &mut slices);
        if slices.len() >= 2 * MAX_FRAMES {
            break;
        }
    }
    // A value may have more parts than the system takes at once.
    slices.truncate(512);
    slices
}

/// Notes that bytes of frames were written, and drops those that were as a whole.
fn advance(frames: &mut VecDeque<Outgoing>, written: &mut usize, n: usize) {
    *written += n;
    while let Some(first) = frames.front() {
        if *written < first.len_bytes() {
            break;
        }
        *written -= first.len_bytes();
        frames.pop_front();
    }
}

impl Shared {
    /// Starts a thread that reads by this number, or stands by.
    ///
    /// # Errors
    ///
    /// The system's if it refuses a thread.
    pub fn start_thread(self: &Arc<Self>, reader: Option<u64>) -> io::Result<()> {
        let shared = self.clone();
        let builder = std::thread::Builder::new().name("tfrt-wire".to_owned());
        let mut threads = self.threads();
        threads.push(builder.spawn(move || shared.live(reader))?);
        Ok(())
    }

    fn live(self: &Arc<Self>, reader: Option<u64>) {
        let reader = reader.or_else(|| {
            let reader = self.readers.stand_by()?;
            // If the system refuses it, calls that last delay others.
            drop(self.start_thread(None));
            Some(reader)
        });
        if let Some(reader) = reader {
            self.readers.enter(reader);
            self.run(reader);
        }
        let own = std::thread::current().id();
        self.threads().retain(|thread| thread.thread().id() != own);
    }

    /// Takes a thread that has not ended.
    pub fn take_thread(&self) -> Option<JoinHandle<()>> {
        self.threads().pop()
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what a call has changed, and wakes the thread if there is more for it to do.
    pub fn flushed(&self, mut inner: MutexGuard<'_, Inner>) {
        let now = Instant::now();
        inner.flush(&self.epoll, now, OWN_BYTES);
        let is_sooner = || {
            let next = inner.next_deadline();
            next.is_some_and(|next| inner.sleeps_until.is_none_or(|until| next < until))
        };
        let has_more =
            !inner.later.is_empty() || !inner.broken.is_empty() || !inner.failed.is_empty();
        let wakes = inner.is_asleep && (has_more || is_sooner());
        drop(inner);
        if wakes {
            self.wake();
        }
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        // It is awake already if the counter is full.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Waits for sockets, and hands over what happens, until the endpoint is dropped, or another thread reads in the place
    /// of this one, which has this number.
    pub fn run(&self, reader: u64) {
        let mut ready = Vec::with_capacity(256);
        loop {
            // Of a reader in whose place this one reads, some may be left.
            if self.hand_over(reader).is_none() {
                return;
            }
            let mut inner = self.lock();
            let now = Instant::now();
            for event in ready.drain(..) {
                let event: epoll::Event = event;
                let (token, flags) = (event.data.u64(), event.flags);
                match token {
                    WAKE => {
                        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                    }
                    _ => inner.ready(&self.epoll, token, flags, now),
                }
            }
            let timeout = self.turn(&mut inner, now);
            if inner.is_stopped {
                inner.remove_paths();
                self.readers.stop();
                return;
            }
            let events = inner.endpoint.take_events();
            let refusals = inner.endpoint.take_refusals();
            let has_events = !events.is_empty() || !refusals.is_empty();
            inner.is_asleep = !has_events;
            if has_events {
                let refusals = refusals.into_iter().map(Happened::Refused);
                let events = events.into_iter();
                let events = events.map(|(peer, event)| Happened::Event(peer, event));
                self.readers.add(refusals.chain(events));
                // The handler may change when to wake.
                continue;
            }
            drop(inner);
            let timeout = timeout.map(|timeout| Timespec {
                tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            });
            let buffer = rustix::buffer::spare_capacity(&mut ready);
            match epoll::wait(&self.epoll, buffer, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // A descriptor of our own that can't be waited for: nothing can be done any more.
                Err(_) => return self.readers.stop(),
            }
        }
    }

    /// Hands over what has happened; `None` if another thread does by now.
    fn hand_over(&self, reader: u64) -> Option<()> {
        loop {
            let happened = match self.readers.next(reader) {
                Next::One(happened) => happened,
                Next::Nothing => return Some(()),
                Next::Displaced => return None,
            };
            // A panic is that event's, and told by the panic hook; others wait for theirs.
            let call = AssertUnwindSafe(|| match happened {
                Happened::Event(peer, event) => self.handler.event(peer, event),
                Happened::Refused(why) => self.handler.refused(&why),
            });
            drop(catch_unwind(call));
        }
    }

    /// Does what is due. Returns how long the thread may sleep.
    fn turn(&self, inner: &mut Inner, now: Instant) -> Option<Duration> {
        if inner.endpoint.next_deadline().is_some_and(|due| due <= now) {
            inner.endpoint.tick(now);
        }
        for peer in inner.endpoint.to_dial(now) {
            inner.dial(&self.epoll, peer, now);
        }
        inner.flush(&self.epoll, now, TURN_BYTES);
        inner.close(&self.epoll, now);
        let expires = inner.expire(&self.epoll, now);
        let next = expires.into_iter().chain(inner.next_deadline()).min();
        inner.sleeps_until = next;
        next.map(|next| next.saturating_duration_since(Instant::now()))
    }
}
