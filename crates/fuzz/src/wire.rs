//! Properties of what peers send: frames that are none are refused, and there is one way to write a frame.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_async::Error;
use tfrt_wire::checksum;
use tfrt_wire::endpoint::{Admission, Config, Endpoint, Origin};
use tfrt_wire::event::Event;
use tfrt_wire::frame::{FrameLimits, HEADER_BYTES, Header, Kind};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::{Failure, Hello, Open, Ready, Welcome, decode_ids, encode_ids};
use tfrt_wire::payload::{AlignedBytes, Landing};

/// The name of the task that hears.
const OWN: &str = "/job:w/task:1";

/// The bounds of the task that hears what is sent.
fn limits() -> Limits {
    Limits {
        max_message_bytes: 64 << 10,
        max_unacknowledged_bytes: 64 << 10,
        max_admitted_bytes: 1 << 20,
        ..Limits::default()
    }
}

struct Memory;

impl Admission for Memory {
    fn admit(&self, _: &str, _: u64, open: &Open) -> Result<Box<dyn Landing>, Error> {
        let len = usize::try_from(open.total_bytes).expect("it is below the limits");
        let memory = AlignedBytes::new(len);
        let memory = memory.ok_or_else(|| Error::resource_exhausted("no memory"))?;
        Ok(Box::new(memory))
    }
}

/// Reads bytes as frames, one behind the other, and lets a task hear them as what a peer sends that dials it. If the
/// first byte is odd, their checksums are put right before, since chance finds no right ones.
///
/// # Panics
///
/// If a frame comes out that is not written as it was, or more memory is held than the bounds allow.
pub fn frames(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else {
        return;
    };
    let stream = match first % 2 {
        1 => mended(stream),
        _ => stream.to_vec(),
    };
    read(&stream);
    hear(&stream, 1 + usize::from(first / 2) * 7);
}

/// Hands the bytes of a connection to a task, in pieces of this length.
fn hear(stream: &[u8], piece: usize) {
    let config = Config {
        name: OWN.to_owned(),
        incarnation: 4,
        secret: None,
        has_certificates: false,
        accepts_unknown: true,
        limits: limits(),
    };
    let endpoint = Endpoint::new(config, Arc::new(Memory));
    let mut endpoint = endpoint.expect("it has a name");
    let begin = Instant::now();
    let connection = endpoint.accepted(Origin::Loopback, [2; 32], begin);
    let connection = connection.expect("there is room");
    for (index, mut rest) in stream.chunks(piece).enumerate() {
        let now = begin + Duration::from_millis(u64::try_from(index).unwrap_or(u64::MAX));
        while !rest.is_empty() {
            let [first, second] = endpoint.space(connection);
            let (n, m) = (first.len().min(rest.len()), second.len());
            first[..n].copy_from_slice(&rest[..n]);
            let m = m.min(rest.len() - n);
            second[..m].copy_from_slice(&rest[n..n + m]);
            if n + m == 0 {
                assert!(endpoint.is_closing(connection), "it reads no more");
                break;
            }
            rest = &rest[n + m..];
            endpoint.filled(connection, n + m, now);
        }
        answer(&mut endpoint);
        endpoint.tick(now);
        while endpoint.next_frame(connection, now).is_some() {}
        for peer in endpoint.peers() {
            let most = limits().max_admitted_bytes + 2 * limits().max_unacknowledged_bytes as u64;
            let held = endpoint.held_bytes(peer);
            assert!(held <= most, "{held} bytes are held for a peer");
        }
    }
    endpoint.cut(connection, begin + Duration::from_secs(1), "it has ended");
    endpoint.tick(begin + Duration::from_secs(3_600));
    endpoint.take_events();
}

fn answer(endpoint: &mut Endpoint) {
    for (peer, event) in endpoint.take_events() {
        if let Event::Request { call, body, .. } = event {
            let replied = endpoint.reply(peer, call, Ok(vec![tfrt_wire::endpoint::bytes(body)]));
            assert!(
                replied.is_ok(),
                "an answer as long as the request is refused"
            );
        }
    }
}

fn read(mut rest: &[u8]) {
    while let Some((head, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let Ok(header) = Header::decode(head, FrameLimits::default()) else {
            return;
        };
        assert!(header.encode() == *head, "a header is written otherwise");
        let len = usize::try_from(header.payload_len_bytes).expect("it is below a limit");
        let Some((payload, behind)) = behind.split_at_checked(len) else {
            return;
        };
        if let Some(again) = written(header.kind, payload) {
            assert!(again == payload, "a {} is written otherwise", header.kind);
        }
        rest = behind;
    }
}

/// Returns the bytes of the message that a payload holds; nothing if it holds none.
fn written(kind: Kind, payload: &[u8]) -> Option<Vec<u8>> {
    match kind {
        Kind::Hello => Hello::decode(payload).ok().map(|it| it.encode()),
        Kind::Welcome => Welcome::decode(payload).ok().map(|it| it.encode()),
        Kind::Ready => Ready::decode(payload).ok().map(|it| it.encode()),
        Kind::Open => Open::decode(payload).ok().map(|it| it.encode()),
        Kind::Cancel => decode_ids(payload).ok().map(|it| encode_ids(&it)),
        Kind::Abort | Kind::Failure | Kind::Bye => {
            Failure::decode(kind, payload).ok().map(|it| it.encode())
        }
        _ => None,
    }
}

/// Returns the frames with checksums that are right.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while at + HEADER_BYTES <= bytes.len() {
        let field = |at: usize| {
            let field = bytes[at..at + 4].try_into().expect("four bytes");
            usize::try_from(u32::from_le_bytes(field)).expect("it fits")
        };
        let begin = at + HEADER_BYTES;
        let end = begin.saturating_add(field(at + 48)).min(bytes.len());
        if field(at + 56) != 0 {
            let crc = checksum(&bytes[begin..end]);
            bytes[at + 56..at + 60].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = checksum(&bytes[at..at + 60]);
        bytes[at + 60..begin].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
    bytes
}

/// Returns frames of each kind, as peers send them.
pub fn examples() -> Vec<Vec<u8>> {
    let mut hello = Hello {
        from: "/job:w/task:0".into(),
        to: OWN.into(),
        incarnation: 3,
        session: 1,
        bound_to: 0,
        nonce: [1; 32],
        max_message_bytes: 1 << 20,
        has_secret: false,
        sums_data: true,
    };
    let welcome = Welcome {
        from: hello.to.clone(),
        incarnation: 4,
        session: 1,
        nonce: [2; 32],
        max_message_bytes: 1 << 20,
        proof: Some([3; 32]),
    };
    let ready = Ready {
        proof: Some([4; 32]),
        received: 5,
        streams: vec![(2, 100)],
    };
    let open = Open {
        key: b"key".to_vec(),
        codec: "!t.tensor".into(),
        total_bytes: 5,
    };
    let failure = Failure {
        code: tfrt_async::ErrorCode::Unavailable,
        message: "gone".into(),
    };
    let payloads = Kind::ALL.map(|kind| match kind {
        Kind::Hello => hello.encode(),
        Kind::Welcome => welcome.encode(),
        Kind::Ready => ready.encode(),
        Kind::Open => open.encode(),
        Kind::Cancel => encode_ids(&[1, 2]),
        Kind::Abort | Kind::Failure | Kind::Bye => failure.encode(),
        Kind::Data | Kind::Request | Kind::Reply => b"bytes".to_vec(),
        Kind::Credit | Kind::Done | Kind::Ping | Kind::Pong | Kind::Ack => Vec::new(),
    });
    let frames = Kind::ALL.iter().zip(&payloads);
    let frames = frames.map(|(kind, payload)| frame(Header::new(*kind), payload));
    let frames: Vec<Vec<u8>> = frames.collect();
    let mut examples: Vec<Vec<u8>> = frames
        .iter()
        .map(|frame| [&[1][..], frame].concat())
        .collect();
    examples.push([&[0][..], &frames.concat()].concat());
    let plain = Ready::default().encode();
    let met = [
        frame(Header::new(Kind::Hello), &hello.encode()),
        frame(Header::new(Kind::Ready), &plain),
    ];
    let numbered = |kind, stream, sequence| Header {
        stream,
        sequence,
        ..Header::new(kind)
    };
    let said = [
        frame(numbered(Kind::Request, 1, 1), b"ask"),
        frame(numbered(Kind::Open, 2, 2), &open.encode()),
        frame(numbered(Kind::Data, 2, 0), b"bytes"),
        frame(numbered(Kind::Request, 2, 3), b""),
        frame(numbered(Kind::Cancel, 0, 4), &encode_ids(&[2])),
        frame(Header::new(Kind::Ping), b""),
        frame(numbered(Kind::Open, 4, 5), &open.encode()),
        frame(numbered(Kind::Abort, 4, 6), &failure.encode()),
        frame(Header::new(Kind::Bye), &failure.encode()),
    ];
    // Cut at each frame, in pieces of different lengths, and with a secret that is not expected.
    for n in 0..=said.len() {
        let first = u8::try_from(n * 30 + 1).unwrap_or(1) | 1;
        examples.push([&[first][..], &met.concat(), &said[..n].concat()].concat());
    }
    hello.has_secret = true;
    examples.push([&[1][..], &frame(Header::new(Kind::Hello), &hello.encode())].concat());
    examples
}

/// Returns a frame of the peer.
fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        incarnation: 3,
        payload_len_bytes: u32::try_from(payload.len()).expect("it is short"),
        payload_crc: checksum(payload),
        ..header
    };
    [&header.encode()[..], payload].concat()
}
