//! A task that hears bytes by hand: from peers that break rules, and from those that come again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_async::{Error, ErrorCode};
use tfrt_wire::checksum;
use tfrt_wire::endpoint::{Admission, Config, ConnectionId, Endpoint, Origin, Role, bytes};
use tfrt_wire::event::{Event, PeerState};
use tfrt_wire::frame::{FrameLimits, HEADER_BYTES, Header, Kind};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::{Failure, Hello, Open, Ready, Welcome};
use tfrt_wire::payload::{AlignedBytes, Landing};
use tfrt_wire::proof::{Secret, Side};

const OWN: &str = "/job:w/task:1";
const PEER: &str = "/job:w/task:0";

struct Memory;

impl Admission for Memory {
    fn admit(&self, _: &str, _: u64, open: &Open) -> Result<Box<dyn Landing>, Error> {
        let memory = AlignedBytes::new(open.total_bytes as usize);
        Ok(Box::new(memory.expect("it is below the limits")))
    }
}

fn limits() -> Limits {
    Limits {
        max_message_bytes: 1 << 10,
        max_admitted_bytes: 1 << 30,
        credit_bytes: 2 << 20,
        max_requests: 2,
        ..Limits::default()
    }
}

fn endpoint(secret: Option<Secret>) -> Endpoint {
    endpoint_with(secret, false)
}

fn endpoint_with(secret: Option<Secret>, has_certificates: bool) -> Endpoint {
    let limits = limits();
    endpoint_of(secret, has_certificates, limits)
}

fn endpoint_of(secret: Option<Secret>, has_certificates: bool, limits: Limits) -> Endpoint {
    let config = Config {
        name: OWN.to_owned(),
        incarnation: 0x11,
        secret,
        has_certificates,
        accepts_unknown: true,
        limits,
    };
    Endpoint::new(config, Arc::new(Memory)).expect("it has a name")
}

fn hello(incarnation: u128, session: u64, bound_to: u128) -> Hello {
    Hello {
        from: PEER.to_owned(),
        to: OWN.to_owned(),
        incarnation,
        session,
        bound_to,
        nonce: [1; 32],
        max_message_bytes: 1 << 10,
        has_secret: false,
        sums_data: true,
    }
}

/// A header and its payload.
type Frame = (Header, Vec<u8>);

/// A peer that writes what it likes.
struct Raw {
    connection: ConnectionId,
    incarnation: u128,
    now: Instant,
}

fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        payload_len_bytes: payload.len() as u32,
        payload_crc: checksum(payload),
        ..header
    };
    [&header.encode()[..], payload].concat()
}

impl Raw {
    fn new(endpoint: &mut Endpoint, incarnation: u128) -> Raw {
        let now = Instant::now();
        let connection = endpoint.accepted(Origin::Loopback, [2; 32], now);
        let connection = connection.expect("there is room");
        Raw {
            connection,
            incarnation,
            now,
        }
    }

    fn write(&self, endpoint: &mut Endpoint, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let [first, second] = endpoint.space(self.connection);
            let n = first.len().min(bytes.len());
            first[..n].copy_from_slice(&bytes[..n]);
            let m = second.len().min(bytes.len() - n);
            second[..m].copy_from_slice(&bytes[n..n + m]);
            if n + m == 0 {
                return;
            }
            bytes = &bytes[n + m..];
            endpoint.filled(self.connection, n + m, self.now);
        }
    }

    fn say(&self, endpoint: &mut Endpoint, header: Header, payload: &[u8]) {
        let header = Header {
            incarnation: self.incarnation as u64,
            ..header
        };
        self.write(endpoint, &frame(header, payload));
    }

    /// Returns what is written, frame by frame.
    fn heard(&self, endpoint: &mut Endpoint) -> Vec<(Header, Vec<u8>)> {
        let mut heard = Vec::new();
        while let Some(frame) = endpoint.next_frame(self.connection, self.now) {
            let bytes = frame.to_bytes();
            let (head, payload) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
            let header = Header::decode(head, FrameLimits::default());
            heard.push((header.expect("it is one"), payload.to_vec()));
        }
        heard
    }

    fn greet(&self, endpoint: &mut Endpoint, hello: &Hello) -> Result<Welcome, String> {
        self.say(endpoint, Header::new(Kind::Hello), &hello.encode());
        let (header, payload) = self.heard(endpoint).pop().expect("an answer");
        match header.kind {
            Kind::Welcome => Ok(Welcome::decode(&payload).expect("it is one")),
            kind => Err(Failure::decode(kind, &payload).expect("it is one").message),
        }
    }

    /// Does a handshake and returns the session.
    fn meet(&self, endpoint: &mut Endpoint, session: u64, bound_to: u128) -> Result<u64, String> {
        let hello = hello(self.incarnation, session, bound_to);
        let welcome = self.greet(endpoint, &hello)?;
        let ready = Ready::default().encode();
        self.say(endpoint, Header::new(Kind::Ready), &ready);
        let heard = self.heard(endpoint);
        assert_eq!(heard[0].0.kind, Kind::Ready);
        Ok(welcome.session)
    }

    /// Returns the last words.
    fn bye(&self, endpoint: &mut Endpoint) -> String {
        let (header, payload) = self.heard(endpoint).pop().expect("last words");
        assert_eq!(header.kind, Kind::Bye);
        assert!(endpoint.is_closing(self.connection));
        let failure = Failure::decode(Kind::Bye, &payload);
        failure.expect("it is one").message
    }
}

fn request(id: u64, sequence: u64) -> Header {
    Header {
        stream: id,
        sequence,
        ..Header::new(Kind::Request)
    }
}

fn open(stream: u64, sequence: u64, total_bytes: u64) -> (Header, Vec<u8>) {
    let open = Open {
        key: b"key".to_vec(),
        codec: "bytes".to_owned(),
        total_bytes,
    };
    let header = Header {
        stream,
        sequence,
        ..Header::new(Kind::Open)
    };
    (header, open.encode())
}

fn data(stream: u64, offset: u64, n_following: u32) -> Header {
    Header {
        stream,
        offset,
        sequence: offset >> 20,
        n_following,
        ..Header::new(Kind::Data)
    }
}

#[test]
fn a_peer_that_breaks_a_rule_is_told_which_and_its_session_ends() {
    let (opened, described) = open(2, 1, 3 << 20);
    let begun = (opened, described.clone());
    let chunk = vec![0; 1 << 20];
    let cases: Vec<(Vec<Frame>, &str)> = vec![
        (
            vec![(request(1, 1), vec![]), (request(1, 2), vec![])],
            "expected a request above 1, found 1",
        ),
        (
            vec![(request(1, 1), vec![0; 1_025])],
            "expected 0 to 1024 bytes in a frame 'request', found 1025",
        ),
        (
            vec![(
                Header {
                    offset: 1,
                    ..request(1, 1)
                },
                vec![],
            )],
            "it acknowledges message 1, which was not sent",
        ),
        (
            vec![(data(2, 0, 0), vec![0])],
            "expected bytes of a stream up to 0, found 2",
        ),
        (
            vec![begun.clone(), (open(2, 2, 0).0, described.clone())],
            "expected a stream above 2, found 2",
        ),
        (
            vec![begun.clone(), (data(2, 3 << 20, 0), vec![0])],
            "expected bytes below 3145728 of a value, found 1 from 3145728",
        ),
        (
            vec![begun.clone(), (data(2, 0, 1), chunk.clone())],
            "expected frame 0 with 2 to follow, found 0 with 1",
        ),
        (
            vec![begun.clone(), (data(2, u64::MAX, 0), vec![0])],
            "expected bytes below 3145728 of a value, found 1 from 18446744073709551615",
        ),
        (
            vec![(Header::new(Kind::Hello), hello(5, 1, 0).encode())],
            "expected no handshake any more, found a frame 'hello'",
        ),
        (
            vec![(
                Header {
                    sequence: 1,
                    ..Header::new(Kind::Cancel)
                },
                vec![0; 9],
            )],
            "in a frame 'cancel': expected 8 bytes of the id, found 1",
        ),
    ];
    for (frames, message) in cases {
        let mut endpoint = endpoint(None);
        let raw = Raw::new(&mut endpoint, 5);
        raw.meet(&mut endpoint, 1, 0).expect("it is welcome");
        for (header, payload) in &frames {
            raw.say(&mut endpoint, *header, payload);
        }
        assert_eq!(raw.bye(&mut endpoint), message);
        let events = endpoint.take_events();
        let ended = events.iter().find_map(|(_, event)| match event {
            Event::Ended(error) => Some(error.message().to_owned()),
            _ => None,
        });
        let expected = format!("task {PEER} is lost: it does not keep to the protocol: {message}");
        assert_eq!(ended.as_deref(), Some(&*expected));
    }
}

#[test]
fn a_frame_of_another_incarnation_is_stale() {
    let mut endpoint = endpoint(None);
    let raw = Raw::new(&mut endpoint, 5);
    raw.meet(&mut endpoint, 1, 0).expect("it is welcome");
    let header = Header {
        incarnation: 6,
        ..request(1, 1)
    };
    raw.write(&mut endpoint, &frame(header, b""));
    let message = "expected frames of the incarnation 0x5, found 0x6: it is stale";
    assert_eq!(raw.bye(&mut endpoint), message);
    let events = endpoint.take_events();
    assert!(
        !events
            .iter()
            .any(|(_, event)| matches!(event, Event::Request { .. }))
    );
}

#[test]
fn values_are_admitted_before_memory_is_taken() {
    let mut endpoint = endpoint(None);
    let raw = Raw::new(&mut endpoint, 5);
    raw.meet(&mut endpoint, 1, 0).expect("it is welcome");
    let (header, payload) = open(2, 1, 1 << 63);
    raw.say(&mut endpoint, header, &payload);
    let heard = raw.heard(&mut endpoint);
    let (header, payload) = heard.last().expect("an answer");
    assert_eq!((header.kind, header.stream), (Kind::Abort, 2));
    let failure = Failure::decode(Kind::Abort, payload).expect("it is one");
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(
        failure.message,
        "expected a value of at most 1073741824 bytes, found 9223372036854775808"
    );
    let peer = endpoint.peer(PEER).expect("it is known");
    assert!(endpoint.held_bytes(peer) < 1_000);
    // What was on its way already is dropped.
    raw.say(&mut endpoint, data(2, 0, 9), &vec![0; 1 << 20]);
    assert!(!endpoint.is_closing(raw.connection));
    assert!(endpoint.held_bytes(peer) < 1_000);
}

#[test]
fn requests_over_the_limit_are_refused_and_others_answered() {
    let mut endpoint = endpoint(None);
    let raw = Raw::new(&mut endpoint, 5);
    raw.meet(&mut endpoint, 1, 0).expect("it is welcome");
    for id in 1..=3 {
        raw.say(&mut endpoint, request(id, id), b"ask");
    }
    let heard = raw.heard(&mut endpoint);
    let (header, payload) = heard.last().expect("an answer");
    assert_eq!((header.kind, header.stream), (Kind::Failure, 3));
    let failure = Failure::decode(Kind::Failure, payload).expect("it is one");
    let message = "expected fewer than 2 requests at a time, found 2";
    assert_eq!(failure.message, message);
    let asked = endpoint.take_events().into_iter();
    let asked = asked.filter_map(|(peer, event)| match event {
        Event::Request { call, .. } => Some((peer, call)),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked.len(), 2);
    let (peer, call) = asked[0];
    let reply = || Ok(vec![bytes(*b"answer")]);
    assert_eq!(endpoint.reply(peer, call, reply()).ok(), Some(true));
    // Once.
    assert_eq!(endpoint.reply(peer, call, reply()).ok(), Some(false));
}

#[test]
fn credit_is_granted_anew_when_half_of_it_is_used() {
    let mut endpoint = endpoint(None);
    let raw = Raw::new(&mut endpoint, 5);
    raw.meet(&mut endpoint, 1, 0).expect("it is welcome");
    let granted = |heard: Vec<(Header, Vec<u8>)>| {
        let credit = heard.into_iter().rev();
        let mut credit = credit.filter(|(header, _)| header.kind == Kind::Credit);
        credit.next().map(|(header, _)| header.offset)
    };
    let (header, payload) = open(2, 1, 64 << 20);
    raw.say(&mut endpoint, header, &payload);
    let chunk = vec![0; 1 << 20];
    raw.say(&mut endpoint, data(2, 0, 63), &chunk);
    assert_eq!(granted(raw.heard(&mut endpoint)), Some(3 << 20));
    for index in 1..3 {
        raw.say(
            &mut endpoint,
            data(2, index << 20, 63 - index as u32),
            &chunk,
        );
    }
    assert_eq!(granted(raw.heard(&mut endpoint)), Some(5 << 20));
    assert!(!endpoint.is_closing(raw.connection));
}

#[test]
fn a_peer_that_comes_again_goes_on_and_one_that_was_replaced_is_stale() {
    let mut endpoint = endpoint(None);
    let first = Raw::new(&mut endpoint, 5);
    assert_eq!(first.meet(&mut endpoint, 1, 0), Ok(1));
    first.say(&mut endpoint, request(1, 1), b"");
    // The same start of the task goes on where it was; its former connection is closed.
    let again = Raw::new(&mut endpoint, 5);
    assert_eq!(again.meet(&mut endpoint, 1, 0x11), Ok(1));
    assert!(endpoint.is_closing(first.connection));
    again.say(&mut endpoint, request(1, 1), b"");
    again.say(&mut endpoint, request(2, 2), b"");
    let asked = endpoint.take_events();
    let asked = asked
        .iter()
        .filter(|(_, event)| matches!(event, Event::Request { .. }));
    assert_eq!(asked.count(), 2);
    // Another start of it ends what there was.
    let newer = Raw::new(&mut endpoint, 7);
    assert_eq!(newer.meet(&mut endpoint, 1, 0), Ok(1));
    let ended = endpoint.take_events();
    let cancelled = ended.iter().find_map(|(_, event)| match event {
        Event::Cancelled(calls) => Some(calls.len()),
        _ => None,
    });
    assert_eq!(cancelled, Some(2));
    // And the former one is stale.
    let zombie = Raw::new(&mut endpoint, 5);
    let refused = zombie.meet(&mut endpoint, 1, 0x11);
    let message = "stale incarnation: another start of this task has joined since";
    assert_eq!(refused, Err(message.to_owned()));
    assert!(!endpoint.is_closing(newer.connection));
}

#[test]
fn a_peer_that_leaves_without_having_asked_anything_is_lost_until_it_comes_again() {
    let mut endpoint = endpoint(None);
    let raw = Raw::new(&mut endpoint, 5);
    raw.meet(&mut endpoint, 1, 0).expect("it is welcome");
    let peer = endpoint.peer(PEER).expect("it is known");
    assert_eq!(endpoint.state(peer), PeerState::Live);
    let last = Failure {
        code: ErrorCode::Ok,
        message: "it has left".to_owned(),
    };
    raw.say(&mut endpoint, Header::new(Kind::Bye), &last.encode());
    assert_eq!(endpoint.state(peer), PeerState::Lost);
    endpoint.cut(raw.connection, raw.now, "closed");
    let error = endpoint.request(peer, 0, Vec::new(), raw.now);
    let error = error.expect_err("it is lost");
    assert_eq!(error.message(), "task /job:w/task:0 is lost: it has left");
    let again = Raw::new(&mut endpoint, 7);
    again.meet(&mut endpoint, 1, 0).expect("it is welcome");
    assert_eq!(endpoint.state(peer), PeerState::Live);
    assert!(endpoint.request(peer, 0, Vec::new(), again.now).is_ok());
}

#[test]
fn answers_to_a_former_start_of_a_task_go_nowhere() {
    let mut endpoint = endpoint(None);
    let calls: Vec<_> = [5, 7]
        .map(|incarnation| {
            let raw = Raw::new(&mut endpoint, incarnation);
            assert_eq!(raw.meet(&mut endpoint, 1, 0), Ok(1));
            raw.say(&mut endpoint, request(1, 1), b"");
            let events = endpoint.take_events().into_iter();
            let mut calls = events.filter_map(|(peer, event)| match event {
                Event::Request { call, .. } => Some((peer, call)),
                _ => None,
            });
            calls.next().expect("it is asked")
        })
        .into();
    let [(peer, former), (_, current)] = calls[..] else {
        panic!("two calls")
    };
    assert_eq!(former.number(), current.number());
    assert_eq!(
        endpoint.reply(peer, former, Ok(Vec::new())).ok(),
        Some(false)
    );
    assert_eq!(
        endpoint.reply(peer, current, Ok(Vec::new())).ok(),
        Some(true)
    );
}

#[test]
fn a_session_whose_lease_is_over_is_not_entered_again() {
    let mut endpoint = endpoint(None);
    let first = Raw::new(&mut endpoint, 5);
    assert_eq!(first.meet(&mut endpoint, 1, 0), Ok(1));
    first.say(&mut endpoint, request(1, 1), b"");
    endpoint.cut(first.connection, first.now, "it broke");
    let mut now = first.now;
    for _ in 0..30 {
        now += Duration::from_millis(500);
        endpoint.tick(now);
    }
    let again = Raw {
        now,
        ..Raw::new(&mut endpoint, 5)
    };
    assert_eq!(again.meet(&mut endpoint, 1, 0x11), Ok(2));
}

#[test]
fn proofs_cover_names_nonces_and_sides() {
    let secret = Secret::new(*b"a secret of 24 characters").expect("it is long enough");
    let hello = hello(5, 1, 0);
    let welcome = Welcome {
        from: OWN.to_owned(),
        incarnation: 0x11,
        session: 1,
        nonce: [2; 32],
        max_message_bytes: 1,
        proof: None,
    };
    let proof = secret.prove(Side::Dials, &hello, &welcome);
    assert!(secret.is_proved(Side::Dials, &hello, &welcome, &proof));
    assert!(!secret.is_proved(Side::Answers, &hello, &welcome, &proof));
    let changes: [fn(&mut Hello); 4] = [
        |hello| hello.from = "/job:w/task:9".to_owned(),
        |hello| hello.nonce[31] ^= 1,
        |hello| hello.session += 1,
        |hello| hello.sums_data = false,
    ];
    for change in changes {
        let mut changed = hello.clone();
        change(&mut changed);
        assert!(!secret.is_proved(Side::Dials, &changed, &welcome, &proof));
    }
    let mut other = welcome;
    other.nonce[0] ^= 1;
    assert!(!secret.is_proved(Side::Dials, &hello, &other, &proof));
    let short = Secret::new(*b"short").expect_err("it is short");
    assert_eq!(short, "expected a secret of at least 16 bytes, found 5");
}

#[test]
fn a_handshake_that_is_played_again_proves_nothing() {
    let secret = Secret::new(*b"a secret of 24 characters").expect("it is long enough");
    let mut endpoint = endpoint(Some(secret.clone()));
    let hello = Hello {
        has_secret: true,
        ..hello(5, 1, 0)
    };
    let first = Raw::new(&mut endpoint, 5);
    let welcome = first.greet(&mut endpoint, &hello).expect("it is welcome");
    let ready = Ready {
        proof: Some(secret.prove(Side::Dials, &hello, &welcome)),
        ..Ready::default()
    };
    first.say(&mut endpoint, Header::new(Kind::Ready), &ready.encode());
    assert_eq!(first.heard(&mut endpoint)[0].0.kind, Kind::Ready);
    // The nonce of another connection is another one.
    let now = Instant::now();
    let connection = endpoint.accepted(Origin::Network, [3; 32], now);
    let replay = Raw {
        connection: connection.expect("there is room"),
        incarnation: 5,
        now,
    };
    replay.greet(&mut endpoint, &hello).expect("it is welcome");
    replay.say(&mut endpoint, Header::new(Kind::Ready), &ready.encode());
    let message = "expected a proof of the shared secret, found that of another";
    assert_eq!(replay.bye(&mut endpoint), message);
    assert!(!endpoint.is_closing(first.connection));
}

#[test]
fn networks_need_a_secret() {
    let now = Instant::now();
    let mut open = endpoint(None);
    let error = open.accepted(Origin::Network, [0; 32], now);
    assert_eq!(
        error.expect_err("it is refused").code(),
        ErrorCode::PermissionDenied
    );
    let peer = open.add_peer(PEER, Role::Dials, now).expect("it is new");
    assert!(open.dialed(peer, Origin::Network, [0; 32], now).is_err());
    let error = open
        .add_peer(OWN, Role::Dials, now)
        .expect_err("it is itself");
    assert_eq!(
        error.message(),
        "expected the name of another task, found /job:w/task:1"
    );
}

#[test]
fn certificates_name_who_dials_and_who_answers() {
    let mut endpoint = endpoint_with(None, true);
    let now = Instant::now();
    for (certified, why) in [
        (None, "expected a certificate of /job:w/task:0, found none"),
        (
            Some("/job:w/task:9"),
            "expected a certificate of /job:w/task:0, found one of /job:w/task:9",
        ),
    ] {
        // Networks need no secret then.
        let connection = endpoint.accepted(Origin::Network, [2; 32], now).unwrap();
        let raw = Raw {
            connection,
            incarnation: 5,
            now,
        };
        if let Some(task) = certified {
            endpoint.authenticated(connection, Ok(task.to_owned()));
        }
        assert_eq!(raw.greet(&mut endpoint, &hello(5, 1, 0)).unwrap_err(), why);
        endpoint.cut(connection, now, "it is over");
        assert_eq!(endpoint.take_refusals(), [why]);
    }
    let peer = endpoint.add_peer(PEER, Role::Dials, now).unwrap();
    let connection = endpoint.dialed(peer, Origin::Network, [3; 32], now);
    let raw = Raw {
        connection: connection.unwrap(),
        incarnation: 5,
        now,
    };
    assert_eq!(raw.heard(&mut endpoint)[0].0.kind, Kind::Hello);
    endpoint.authenticated(raw.connection, Ok("/job:w/task:9".to_owned()));
    let welcome = Welcome {
        from: PEER.to_owned(),
        incarnation: 5,
        session: 1,
        nonce: [4; 32],
        max_message_bytes: 1 << 10,
        proof: None,
    };
    raw.say(&mut endpoint, Header::new(Kind::Welcome), &welcome.encode());
    let why = "expected a certificate of /job:w/task:0, found one of /job:w/task:9";
    assert_eq!(raw.bye(&mut endpoint), why);
}

#[test]
fn a_peer_that_was_removed_is_dialled_no_more_and_all_that_waits_for_it_fails() {
    let mut endpoint = endpoint(None);
    let now = Instant::now();
    let peer = endpoint.add_peer(PEER, Role::Dials, now).unwrap();
    assert_eq!(endpoint.to_dial(now), [peer]);
    endpoint.dial_failed(peer, now, "nobody is there");
    let asked = endpoint.request(peer, 0, Vec::new(), now).unwrap();
    endpoint.remove_peer(peer);
    let events = endpoint.take_events();
    let failed = events.iter().find_map(|(_, event)| match event {
        Event::Failed { id, error, .. } => Some((*id, error.message().to_owned())),
        _ => None,
    });
    let lost = "task /job:w/task:0 is lost: it was removed";
    assert_eq!(failed, Some((asked, lost.to_owned())));
    let later = now + Duration::from_secs(60);
    assert!(endpoint.to_dial(later).is_empty());
    assert_eq!(endpoint.next_deadline(), None);
    assert_eq!(endpoint.state(peer), PeerState::Lost);
    let error = endpoint.request(peer, 0, Vec::new(), now).unwrap_err();
    assert_eq!(error.message(), "the task was removed");
    let error = endpoint.dialed(peer, Origin::Loopback, [0; 32], now);
    assert_eq!(error.unwrap_err().code(), ErrorCode::Unavailable);
    // It may come again, as another peer.
    let again = endpoint.add_peer(PEER, Role::Dials, now).unwrap();
    assert_ne!(again, peer);
    assert_eq!(endpoint.to_dial(now), [again]);
}

#[test]
fn a_peer_that_is_removed_while_it_is_connected_is_told() {
    let mut endpoint = endpoint(None);
    let raw = Raw::new(&mut endpoint, 5);
    raw.meet(&mut endpoint, 1, 0).unwrap();
    let peer = endpoint.peer(PEER).unwrap();
    endpoint.remove_peer(peer);
    assert_eq!(raw.bye(&mut endpoint), "it has left");
    raw.say(&mut endpoint, request(1, 1), b"ask");
    endpoint.cut(raw.connection, Instant::now(), "it is over");
    let asked = |event: &Event| matches!(event, Event::Request { .. });
    assert!(!endpoint.take_events().iter().any(|(_, event)| asked(event)));
}

#[test]
fn names_that_somebody_makes_up_fill_no_table_for_good() {
    let limits = Limits {
        max_connections: 2,
        ..limits()
    };
    let mut endpoint = endpoint_of(None, false, limits);
    let join = |endpoint: &mut Endpoint, number: u128| {
        let raw = Raw::new(endpoint, number);
        let hello = Hello {
            from: format!("/job:w/task:{}", number + 10),
            ..hello(number, 1, 0)
        };
        let welcome = raw.greet(endpoint, &hello);
        if welcome.is_ok() {
            let ready = Ready::default().encode();
            raw.say(endpoint, Header::new(Kind::Ready), &ready);
        }
        welcome.map(|_| raw)
    };
    let leave = |endpoint: &mut Endpoint, raw: &Raw| {
        let left = Failure {
            code: ErrorCode::Ok,
            message: "it has left".to_owned(),
        };
        raw.say(endpoint, Header::new(Kind::Bye), &left.encode());
        endpoint.cut(raw.connection, raw.now, "it is over");
    };
    let first = join(&mut endpoint, 1).unwrap();
    let second = join(&mut endpoint, 2).unwrap();
    leave(&mut endpoint, &first);
    let third = join(&mut endpoint, 3).unwrap();
    assert_eq!(endpoint.peer("/job:w/task:11"), None);
    assert!(endpoint.peer("/job:w/task:12").is_some());
    leave(&mut endpoint, &second);
    leave(&mut endpoint, &third);
    assert!(join(&mut endpoint, 4).is_ok());
    assert!(join(&mut endpoint, 5).is_ok());
    let n_peers = endpoint.peers().count();
    assert_eq!(n_peers, 2);
}
