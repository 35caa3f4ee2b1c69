//! Properties of what peers send: frames that are none are refused, and there is one way to write a frame.

use tfrt_wire::checksum;
use tfrt_wire::frame::{FrameLimits, HEADER_BYTES, Header, Kind};
use tfrt_wire::message::{Failure, Hello, Open, Ready, Welcome, decode_ids, encode_ids};

/// Reads bytes as frames, one behind the other. If the first byte is odd, their checksums are put right before, since
/// chance finds no right ones.
///
/// # Panics
///
/// If a frame comes out that is not written as it was.
pub fn frames(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else {
        return;
    };
    let stream = match first % 2 {
        1 => mended(stream),
        _ => stream.to_vec(),
    };
    read(&stream);
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
    let hello = Hello {
        from: "/job:w/task:0".into(),
        to: "/job:w/task:1".into(),
        incarnation: 3,
        session: 1,
        bound_to: 0,
        nonce: [1; 32],
        max_message_bytes: 1 << 20,
        has_secret: true,
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
    let frame = |(kind, payload): (&Kind, &Vec<u8>)| {
        let header = Header {
            payload_len_bytes: u32::try_from(payload.len()).expect("it is short"),
            payload_crc: checksum(payload),
            ..Header::new(*kind)
        };
        [&header.encode()[..], payload].concat()
    };
    let frames: Vec<Vec<u8>> = Kind::ALL.iter().zip(&payloads).map(frame).collect();
    let mut examples: Vec<Vec<u8>> = frames
        .iter()
        .map(|frame| [&[1][..], frame].concat())
        .collect();
    examples.push([&[0][..], &frames.concat()].concat());
    examples.push([&[1][..], &frames.concat()].concat());
    examples
}
