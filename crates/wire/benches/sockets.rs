//! `cargo bench -p tfrt-wire`: short messages and long values between two tasks of one process, beside bare sockets.
//!
//! Each line is a ratio of one run, in which the two take turns: on a busy machine times mean little. `TFRT_BENCH_RUNS` is
//! the number of turns.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use tfrt_async::Error;
use tfrt_wire::endpoint::{Admission, Config, PeerId, bytes};
use tfrt_wire::event::Event;
use tfrt_wire::limits::Limits;
use tfrt_wire::message::Open;
use tfrt_wire::payload::{AlignedBytes, Landing, Part};
use tfrt_wire::socket::{Address, Sockets, new_incarnation};

const LEN: usize = 64 << 20;
const N_MESSAGES: usize = 500;

struct Memory;

impl Admission for Memory {
    fn admit(&self, _: &str, _: u64, open: &Open) -> Result<Box<dyn Landing>, Error> {
        let memory = AlignedBytes::new(open.total_bytes as usize);
        Ok(Box::new(memory.expect("there is memory")))
    }
}

/// Two tasks, the second of which answers what it is asked.
struct Pair {
    sockets: Sockets,
    peer: PeerId,
    events: Receiver<Event>,
    _server: Arc<Sockets>,
}

fn config(task: u32) -> Config {
    Config {
        name: format!("/job:w/task:{task}"),
        incarnation: new_incarnation().expect("there are random numbers"),
        secret: None,
        has_certificates: false,
        accepts_unknown: true,
        limits: Limits::default(),
    }
}

fn pair(address: &Address) -> Pair {
    let server: Arc<OnceLock<Weak<Sockets>>> = Arc::default();
    let own = server.clone();
    let answer = move |peer, event| {
        if let Event::Request { call, body, .. } = event
            && let Some(own) = own.get().and_then(Weak::upgrade)
        {
            own.reply(peer, call, Ok(vec![bytes(body)]))
                .expect("it is short");
        }
    };
    let started = Sockets::start(config(1), Arc::new(Memory), Arc::new(answer));
    let started = Arc::new(started.expect("there is room"));
    server.get_or_init(|| Arc::downgrade(&started));
    let address = started.listen(address).expect("it listens");
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let hear = move |_, event| {
        let sender = sender.lock().expect("nobody panics with it");
        drop(sender.send(event));
    };
    let sockets = Sockets::start(config(0), Arc::new(Memory), Arc::new(hear));
    let sockets = sockets.expect("there is room");
    let peer = sockets.add_peer("/job:w/task:1", Some(address));
    Pair {
        sockets,
        peer: peer.expect("it is new"),
        events,
        _server: started,
    }
}

impl Pair {
    fn wait(&self, is_it: impl Fn(&Event) -> bool) {
        while !is_it(&self.events.recv().expect("it comes")) {}
    }

    fn round_trip(&self, body: &Part) {
        let asked = self.sockets.request(self.peer, 0, vec![body.clone()]);
        asked.expect("it is taken");
        self.wait(|event| matches!(event, Event::Reply { .. }));
    }

    fn send(&self, value: &Part) {
        let sent = self
            .sockets
            .send(self.peer, 0, b"key", "bytes", vec![value.clone()]);
        sent.expect("it is taken");
        self.wait(|event| matches!(event, Event::Sent(_)));
    }
}

/// Echoes messages of 64 bytes; then takes a value and says one byte.
fn serve(mut stream: impl Read + Write) {
    let mut message = [0; 64];
    while stream.read_exact(&mut message).is_ok() {
        if message[0] == 0 {
            stream.write_all(&message).expect("it is read");
            continue;
        }
        // As a value that comes: memory that nobody has touched.
        let mut value = vec![0; LEN];
        let mut n = 0;
        while n < LEN {
            let end = LEN.min(n + (1 << 20));
            n += stream.read(&mut value[n..end]).expect("it comes");
        }
        std::hint::black_box(&value);
        stream.write_all(&[1]).expect("it is read");
    }
}

/// Returns the time of a short message there and back, and of a value.
fn bare(stream: &mut (impl Read + Write), value: &[u8]) -> (Duration, Duration) {
    let mut message = [0; 64];
    let mut times = Vec::new();
    for _ in 0..N_MESSAGES {
        let begin = Instant::now();
        stream.write_all(&message).expect("it is read");
        stream.read_exact(&mut message).expect("it comes");
        times.push(begin.elapsed());
    }
    let begin = Instant::now();
    stream.write_all(&[1; 64]).expect("it is read");
    stream.write_all(value).expect("it is read");
    stream.read_exact(&mut message[..1]).expect("it comes");
    (median(&mut times), begin.elapsed())
}

fn ours(pair: &Pair, value: &Part) -> (Duration, Duration) {
    let message = bytes([0; 64]);
    let mut times = Vec::new();
    for _ in 0..N_MESSAGES {
        let begin = Instant::now();
        pair.round_trip(&message);
        times.push(begin.elapsed());
    }
    let begin = Instant::now();
    pair.send(value);
    (median(&mut times), begin.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn compare(name: &str, pair: &Pair, mut stream: impl Read + Write, n_turns: usize) {
    let value = vec![7; LEN];
    let part = bytes(value.clone());
    // Both have met before.
    pair.round_trip(&bytes([0; 64]));
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for _ in 0..n_turns {
        theirs.push(bare(&mut stream, &value));
        own.push(ours(pair, &part));
    }
    let best = |times: &[(Duration, Duration)]| {
        let mut short: Vec<_> = times.iter().map(|(short, _)| *short).collect();
        let mut long: Vec<_> = times.iter().map(|(_, long)| *long).collect();
        (median(&mut short), median(&mut long))
    };
    let (bare, ours) = (best(&theirs), best(&own));
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let rate = |time: Duration| LEN as f64 / time.as_secs_f64() / 1e9;
    println!(
        "{name}, 64 bytes there and back: {:.1} us; bare socket {:.1} us; ratio {:.2}",
        micros(ours.0),
        micros(bare.0),
        micros(ours.0) / micros(bare.0)
    );
    println!(
        "{name}, 64 MiB one way: {:.2} GB/s; bare socket {:.2} GB/s; ratio {:.2}",
        rate(ours.1),
        rate(bare.1),
        rate(ours.1) / rate(bare.1)
    );
}

fn main() {
    let turns = std::env::var("TFRT_BENCH_RUNS").ok();
    let n_turns = turns.and_then(|turns| turns.parse().ok()).unwrap_or(11);
    let path = std::env::temp_dir().join(format!("tfrt-wire-bench-{}", std::process::id()));
    let (one, other) = UnixStream::pair().expect("there is room");
    std::thread::spawn(move || serve(other));
    compare("Unix", &pair(&Address::Unix(path)), one, n_turns);
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it listens");
    let one = TcpStream::connect(address).expect("it listens");
    let (other, _) = listener.accept().expect("it comes");
    for stream in [&one, &other] {
        stream.set_nodelay(true).expect("it is a stream");
    }
    std::thread::spawn(move || serve(other));
    let tcp = "127.0.0.1:0".parse().expect("it is an address");
    compare("TCP", &pair(&tcp), one, n_turns);
}
