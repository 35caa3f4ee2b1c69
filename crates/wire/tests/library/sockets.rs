//! Tasks on Unix and TCP sockets of this machine.

use std::any::Any;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tfrt_async::{Error, ErrorCode};
use tfrt_wire::endpoint::{Admission, Config, PeerId, bytes};
use tfrt_wire::event::{Event, PeerState};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::Open;
use tfrt_wire::payload::{AlignedBytes, Landing};
use tfrt_wire::proof::Secret;
use tfrt_wire::socket::{Address, Sockets, lasting, new_incarnation};

/// The longest time for which something is waited for that must come.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Memory;

impl Admission for Memory {
    fn admit(&self, _: &str, _: u64, open: &Open) -> Result<Box<dyn Landing>, Error> {
        if open.codec != "bytes" {
            let message = format!("expected the codec 'bytes', found '{}'", open.codec);
            return Err(Error::invalid_argument(message));
        }
        let memory = AlignedBytes::new(open.total_bytes as usize);
        Ok(Box::new(memory.expect("there is memory")))
    }
}

/// A task whose events wait to be looked at.
struct Task {
    sockets: Arc<Sockets>,
    events: Receiver<(PeerId, Event)>,
}

struct Options {
    secret: Option<&'static str>,
    limits: Limits,
    accepts_unknown: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            secret: None,
            limits: Limits::default(),
            accepts_unknown: true,
        }
    }
}

fn task(name: &str, options: Options) -> Task {
    let secret = options.secret.map(Secret::new);
    let config = Config {
        secret: secret.transpose().expect("it is long enough"),
        accepts_unknown: options.accepts_unknown,
        limits: options.limits,
        ..config(name)
    };
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let handler = move |peer, event| {
        let sender = sender.lock().expect("nobody panics with it");
        drop(sender.send((peer, event)));
    };
    let sockets = Sockets::start(config, Arc::new(Memory), Arc::new(handler));
    let sockets = Arc::new(sockets.expect("the system has room"));
    Task { sockets, events }
}

/// Returns the description of a task without a secret.
fn config(name: &str) -> Config {
    Config {
        name: name.to_owned(),
        incarnation: new_incarnation().expect("there are random numbers"),
        secret: None,
        has_certificates: false,
        accepts_unknown: true,
        limits: Limits::default(),
    }
}

impl Task {
    /// Returns the next event that `choose` takes.
    fn wait<R>(&self, choose: impl Fn(PeerId, Event) -> Option<R>) -> R {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let (peer, event) = self.events.recv_timeout(left).expect("it comes");
            if let Some(found) = choose(peer, event) {
                return found;
            }
        }
    }

    fn wait_for(&self, wanted: PeerState) {
        self.wait(|_, event| match event {
            Event::State(state) => (state == wanted).then_some(()),
            _ => None,
        });
    }
}

pub fn path(name: &str) -> Address {
    let mut path: PathBuf = std::env::temp_dir();
    path.push(format!("tfrt-wire-{}-{name}", std::process::id()));
    Address::Unix(path)
}

pub fn tcp() -> Address {
    "127.0.0.1:0".parse().expect("it is an address")
}

/// Returns two tasks, the first of which dials the second, and both as peers of each other.
fn pair(address: &Address, options: [Options; 2]) -> ((Task, PeerId), (Task, PeerId)) {
    let [first, second] = options;
    let one = task("/job:w/task:0", first);
    let other = task("/job:w/task:1", second);
    let address = other.sockets.listen(address).expect("it listens");
    let from_other = other.sockets.add_peer("/job:w/task:0", None);
    let from_one = one.sockets.add_peer("/job:w/task:1", Some(address));
    (
        (one, from_one.expect("it is new")),
        (other, from_other.expect("it is new")),
    )
}

pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

pub fn contents(value: Box<dyn Landing>) -> Vec<u8> {
    let value: Box<dyn Any> = value.into_any();
    let mut value: Box<AlignedBytes> = value.downcast().expect("it is ours");
    assert_eq!(value.bytes().as_ptr() as usize % 64, 0);
    value.bytes().to_vec()
}

fn asks_and_sends(address: &Address, options: [Options; 2]) {
    let ((one, to_other), (other, to_one)) = pair(address, options);
    let ask = |body: &[u8]| {
        let id = one.sockets.request(to_other, 7, vec![bytes(body)]);
        id.expect("it is taken")
    };
    for n in 0..50 {
        let asked = vec![n; 100 * usize::from(n)];
        let id = ask(&asked);
        let (call, body) = other.wait(|_, event| match event {
            Event::Request { call, body, .. } => Some((call, body)),
            _ => None,
        });
        assert_eq!(body, asked);
        let is_of_use = other.sockets.reply(to_one, call, Ok(vec![bytes(body)]));
        assert!(is_of_use.expect("it is short"));
        let answer = one.wait(|_, event| match event {
            Event::Reply { id: found, body } => Some((found, body)),
            _ => None,
        });
        assert_eq!(answer, (id, asked));
    }
    let values = [0, 1, 5_000_000];
    for (from, to, peer) in [(&one, &other, to_other), (&other, &one, to_one)] {
        for len in values {
            let value = pattern(len);
            let parts = value.chunks(1 + len / 3).map(bytes).collect();
            let sent = from.sockets.send(peer, 1, b"key", "bytes", parts);
            sent.expect("it is taken");
        }
        // Values come as they are complete.
        let mut came: Vec<Vec<u8>> = Vec::new();
        for _ in values {
            came.push(to.wait(|_, event| match event {
                Event::Value { key, value, .. } => {
                    assert_eq!(key, b"key");
                    Some(contents(value))
                }
                _ => None,
            }));
            from.wait(|_, event| matches!(event, Event::Sent(_)).then_some(()));
        }
        came.sort_by_key(Vec::len);
        assert!(came == values.map(pattern));
    }
}

fn with_secret(secret: &'static str) -> Options {
    Options {
        secret: Some(secret),
        ..Options::default()
    }
}

#[test]
fn tasks_ask_and_send_over_unix_sockets() {
    asks_and_sends(&path("plain"), [Options::default(), Options::default()]);
}

#[test]
fn tasks_ask_and_send_over_tcp() {
    asks_and_sends(&tcp(), [Options::default(), Options::default()]);
}

#[test]
fn tasks_with_a_shared_secret_meet() {
    let secret = "a secret of 24 characters";
    asks_and_sends(&tcp(), [with_secret(secret), with_secret(secret)]);
}

#[test]
fn tasks_whose_secrets_differ_do_not_meet() {
    let none = Options::default;
    for (options, why) in [
        (
            [
                with_secret("one secret of a cluster"),
                with_secret("another secret of one"),
            ],
            "expected a proof of the shared secret, found that of another",
        ),
        (
            [none(), with_secret("one secret of a cluster")],
            "expected a proof of the shared secret, found none",
        ),
        (
            [with_secret("one secret of a cluster"), none()],
            "expected no shared secret, found a peer that has one",
        ),
    ] {
        let mut options = options;
        options[0].limits.join_timeout = Duration::from_millis(300);
        let ((one, to_other), (other, _)) = pair(&tcp(), options);
        let id = one.sockets.request(to_other, 0, Vec::new());
        id.expect("it waits for the peer");
        let error = one.wait(|_, event| match event {
            Event::Failed {
                error,
                may_have_run,
                ..
            } => {
                assert!(!may_have_run);
                Some(error)
            }
            _ => None,
        });
        assert_eq!(error.code(), ErrorCode::Unavailable);
        let message = error.message();
        assert!(
            message.starts_with("task /job:w/task:1 is lost: "),
            "{message}"
        );
        assert!(message.contains(why), "{message}");
        assert!(other.events.try_recv().is_err());
    }
}

#[test]
fn nobody_listens_on_a_network_without_a_secret() {
    let open = task("/job:w/task:0", Options::default());
    let everywhere: Address = "0.0.0.0:0".parse().expect("it is an address");
    let error = open.sockets.listen(&everywhere).expect_err("it is refused");
    assert_eq!(error.code(), ErrorCode::PermissionDenied);
    assert_eq!(
        error.message(),
        "can't listen at 0.0.0.0:0: expected certificates, or a shared secret, or an address of this machine alone \
         (loopback, or a Unix socket of the same user), found none of them"
    );
    let closed = task("/job:w/task:0", with_secret("a secret of 24 characters"));
    closed
        .sockets
        .listen(&everywhere)
        .expect("there is a secret");
}

#[test]
fn a_task_that_nobody_has_named_is_refused() {
    let known = Options {
        accepts_unknown: false,
        ..Options::default()
    };
    let one = task("/job:w/task:0", Options::default());
    let other = task("/job:w/task:1", known);
    let address = other.sockets.listen(&tcp()).expect("it listens");
    let peer = one.sockets.add_peer("/job:w/task:1", Some(address));
    let peer = peer.expect("it is new");
    let end = Instant::now() + PATIENCE;
    while !one.sockets.why(peer).contains("found /job:w/task:0") {
        assert!(Instant::now() < end, "{}", one.sockets.why(peer));
        std::thread::yield_now();
    }
    let why = "it ends the connection: expected a task of this cluster, found /job:w/task:0";
    assert_eq!(one.sockets.why(peer), why);
}

#[test]
fn what_is_on_its_way_when_a_connection_breaks_comes_once() {
    let ((one, to_other), (other, to_one)) = pair(&tcp(), Default::default());
    one.wait_for(PeerState::Live);
    let value = pattern(40_000_000);
    let part = bytes(value.clone());
    let sent = one.sockets.send(to_other, 0, b"long", "bytes", vec![part]);
    sent.expect("it is taken");
    let mut asked = Vec::new();
    for n in 0..200_u64 {
        let id = one.sockets.request(to_other, n, Vec::new());
        asked.push(id.expect("it is taken"));
        if n % 50 == 20 {
            one.sockets.break_connection(to_other);
            one.wait_for(PeerState::Live);
        }
    }
    let (mut contexts, mut came) = (Vec::new(), None);
    while contexts.len() < 200 || came.is_none() {
        other
            .wait(|_, event| {
                match event {
                    Event::Request { call, context, .. } => {
                        return Some((Some((call, context)), None));
                    }
                    Event::Value { value, .. } => return Some((None, Some(contents(value)))),
                    _ => {}
                }
                None
            })
            .pipe(|(request, value)| {
                if let Some((call, context)) = request {
                    contexts.push(context);
                    other
                        .sockets
                        .reply(to_one, call, Ok(Vec::new()))
                        .expect("it is short");
                }
                came = came.take().or(value);
            });
    }
    assert!(contexts.iter().copied().eq(0..200));
    assert!(came.is_some_and(|came| came == value));
    let mut answered = Vec::new();
    while answered.len() < 200 {
        answered.push(one.wait(|_, event| match event {
            Event::Reply { id, .. } => Some(id),
            Event::Failed { error, .. } => panic!("{error}"),
            _ => None,
        }));
    }
    assert_eq!(answered, asked);
}

trait Pipe: Sized {
    fn pipe(self, work: impl FnOnce(Self)) {
        work(self);
    }
}

impl<T> Pipe for T {}

#[test]
fn a_task_that_leaves_is_lost_at_once_by_its_name() {
    let ((one, to_other), (other, _)) = pair(&path("leaves"), Default::default());
    let id = one.sockets.request(to_other, 0, Vec::new());
    let id = id.expect("it is taken");
    other.wait(|_, event| matches!(event, Event::Request { .. }).then_some(()));
    drop(other);
    let failed = one.wait(|_, event| match event {
        Event::Failed {
            id,
            error,
            may_have_run,
        } => Some((id, error.message().to_owned(), may_have_run)),
        _ => None,
    });
    let message = "task /job:w/task:1 is lost: it has left".to_owned();
    assert_eq!(failed, (id, message, true));
    let error = one.sockets.request(to_other, 0, Vec::new());
    let error = error.expect_err("it is lost");
    assert_eq!(error.code(), ErrorCode::Unavailable);
}

#[test]
fn a_task_whose_address_refuses_has_ended_without_a_word() {
    let other = task("/job:w/task:1", Options::default());
    let behind = other.sockets.listen(&tcp()).expect("it listens");
    let Address::Tcp(behind) = behind else {
        panic!("{behind}")
    };
    // What listens for it can be closed while it lives.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let one = task("/job:w/task:0", Options::default());
    let from_one = one
        .sockets
        .add_peer("/job:w/task:1", Some(address))
        .unwrap();
    let (near, _) = listener.accept().unwrap();
    let far = TcpStream::connect(behind).unwrap();
    for (from, to) in [(&near, &far), (&far, &near)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    }
    one.wait_for(PeerState::Live);
    let begin = Instant::now();
    drop(listener);
    near.shutdown(std::net::Shutdown::Both).unwrap();
    far.shutdown(std::net::Shutdown::Both).unwrap();
    let error = one.wait(|_, event| match event {
        Event::Ended(error) => Some(error),
        _ => None,
    });
    assert!(begin.elapsed() < Limits::default().lease / 2, "{error}");
    assert!(error.message().contains("can't dial"), "{error}");
    assert_eq!(one.sockets.state(from_one), PeerState::Lost);
}

#[test]
fn work_of_a_handler_that_lasts_holds_up_no_others() {
    // Each call but the last waits, so that other threads make those behind it; the order is that of the requests.
    let (sender, begun) = channel();
    let (release, released) = channel::<()>();
    let (sender, released) = (Mutex::new(sender), Mutex::new(released));
    let handler = move |_, event| {
        if let Event::Request { context, .. } = event {
            let sender = sender.lock().expect("nobody panics with it").clone();
            sender.send(context).expect("the test waits for it");
            if context < 4 {
                lasting(|| {
                    let released = released.lock().expect("nobody panics with it");
                    let _ = released.recv_timeout(PATIENCE);
                });
            }
        }
    };
    let server = Sockets::start(config("/job:w/task:1"), Arc::new(Memory), Arc::new(handler));
    let server = server.expect("the system has room");
    let address = server.listen(&tcp()).expect("it listens");
    let one = task("/job:w/task:0", Options::default());
    let peer = one.sockets.add_peer("/job:w/task:1", Some(address));
    let peer = peer.expect("it is new");
    for context in 0..=4 {
        let asked = one.sockets.request(peer, context, Vec::new());
        asked.expect("it is taken");
    }
    for context in 0..=4 {
        assert_eq!(begun.recv_timeout(PATIENCE), Ok(context));
    }
    for _ in 0..4 {
        release.send(()).expect("the calls wait for it");
    }
    // Those threads end with their calls, and it is answered on.
    let asked = one.sockets.request(peer, 5, Vec::new());
    asked.expect("it is taken");
    assert_eq!(begun.recv_timeout(PATIENCE), Ok(5));
}

#[test]
fn a_handler_that_panics_costs_its_event_alone() {
    let (sender, states) = channel();
    let sender = Mutex::new(sender);
    let handler = move |_, event| match event {
        Event::State(PeerState::Live) => panic!("a panic that is meant"),
        Event::Request { context, .. } => {
            let sender = sender.lock().expect("nobody panics with it");
            sender.send(context).expect("the test waits for it");
        }
        _ => {}
    };
    let server = Sockets::start(config("/job:w/task:1"), Arc::new(Memory), Arc::new(handler));
    let server = server.expect("the system has room");
    let address = server.listen(&tcp()).expect("it listens");
    let one = task("/job:w/task:0", Options::default());
    let peer = one.sockets.add_peer("/job:w/task:1", Some(address));
    let asked = one.sockets.request(peer.expect("it is new"), 9, Vec::new());
    asked.expect("it is taken");
    assert_eq!(states.recv_timeout(PATIENCE), Ok(9));
}

#[test]
fn values_that_are_not_taken_are_refused_with_the_reason() {
    let ((one, to_other), (_other, _)) = pair(&path("refused"), Default::default());
    let part = bytes(pattern(3_000_000));
    let stream = one.sockets.send(to_other, 0, b"key", "!t.odd", vec![part]);
    let stream = stream.expect("it is taken");
    let failed = one.wait(|_, event| match event {
        Event::SendFailed { stream, error } => Some((stream, error)),
        _ => None,
    });
    assert_eq!(failed.0, stream);
    assert_eq!(failed.1.code(), ErrorCode::InvalidArgument);
    assert_eq!(
        failed.1.message(),
        "task /job:w/task:1: expected the codec 'bytes', found '!t.odd'"
    );
}

fn server(limits: Limits) -> (Task, std::net::SocketAddr) {
    let options = Options {
        limits,
        ..Options::default()
    };
    let server = task("/job:w/task:0", options);
    let Ok(Address::Tcp(address)) = server.sockets.listen(&tcp()) else {
        panic!("expected a port");
    };
    (server, address)
}

/// Returns what a connection is told before it is closed.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("it is a time");
    let mut rest = Vec::new();
    // A connection may be reset behind what it was told.
    drop(stream.read_to_end(&mut rest));
    rest
}

#[test]
fn strangers_are_shown_out() {
    let (server, address) = server(Limits::default());
    let mut http = TcpStream::connect(address).expect("it listens");
    let request =
        format!("GET / HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\nUser-Agent: test\r\n\r\n");
    http.write_all(request.as_bytes()).expect("it is read");
    assert!(rest(http).is_empty());
    // Another version is told so.
    let mut header = tfrt_wire::frame::Header::new(tfrt_wire::frame::Kind::Ping).encode();
    header[4] = 2;
    let mut newer = TcpStream::connect(address).expect("it listens");
    newer.write_all(&header).expect("it is read");
    let told = rest(newer);
    let told = String::from_utf8_lossy(&told);
    assert!(
        told.contains("expected version 1 of the protocol, found 2"),
        "{told}"
    );
    // A frame of a link before a handshake.
    let mut early = TcpStream::connect(address).expect("it listens");
    let header = tfrt_wire::frame::Header::new(tfrt_wire::frame::Kind::Ping);
    early.write_all(&header.encode()).expect("it is read");
    let told = rest(early);
    let told = String::from_utf8_lossy(&told);
    assert!(
        told.contains("expected a handshake, found a frame 'ping'"),
        "{told}"
    );
    assert!(server.events.try_recv().is_err());
}

#[test]
fn connections_that_say_nothing_are_closed_in_time() {
    let (_server, address) = server(Limits {
        hello_timeout: Duration::from_millis(50),
        ..Limits::default()
    });
    let silent = TcpStream::connect(address).expect("it listens");
    assert!(rest(silent).is_empty());
}

#[test]
fn no_more_connections_are_taken_than_allowed() {
    let (_server, address) = server(Limits {
        max_handshakes: 2,
        ..Limits::default()
    });
    let connect = || TcpStream::connect(address).expect("it listens");
    let (_one, _two) = (connect(), connect());
    assert!(rest(connect()).is_empty());
}

#[test]
fn addresses_are_read_and_written() {
    for text in ["127.0.0.1:7000", "[::1]:0", "unix:/run/task"] {
        let address: Address = text.parse().expect("it is one");
        assert_eq!(address.to_string(), text);
    }
    let error = "host".parse::<Address>().expect_err("it is none");
    assert_eq!(
        error.message(),
        "expected an address such as 127.0.0.1:7000 or unix:/run/task, found 'host'"
    );
}

#[test]
fn a_path_with_a_socket_that_nobody_listens_on_is_used_again() {
    let address = path("left");
    let Address::Unix(file) = &address else {
        panic!("it is a path")
    };
    drop(std::os::unix::net::UnixListener::bind(file).expect("it is free"));
    assert!(file.exists());
    let one = task("/job:w/task:0", Options::default());
    one.sockets.listen(&address).expect("nobody listens");
    let other = task("/job:w/task:1", Options::default());
    let error = other
        .sockets
        .listen(&address)
        .expect_err("somebody listens");
    assert!(
        error.message().contains("Address already in use"),
        "{error}"
    );
    drop(one);
    assert!(!file.exists());
}
