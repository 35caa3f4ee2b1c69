//! Payloads of frames: what is written is read, what is cut or odd is refused.

use tfrt_async::ErrorCode;
use tfrt_wire::frame::Kind;
use tfrt_wire::message::{
    Failure, Hello, MAX_CANCELLED, MAX_FAILURE_BYTES, MAX_STREAMS, Open, Ready, Welcome,
    decode_ids, encode_ids,
};

fn hello() -> Hello {
    Hello {
        from: "/job:w/task:0".into(),
        to: "/job:w/task:1".into(),
        incarnation: 1 << 100,
        session: 3,
        bound_to: 7,
        nonce: [5; 32],
        max_message_bytes: 1 << 20,
        has_secret: true,
        sums_data: false,
    }
}

fn welcome(proof: Option<[u8; 32]>) -> Welcome {
    Welcome {
        from: "/job:w/task:1".into(),
        incarnation: 9,
        session: 3,
        nonce: [6; 32],
        max_message_bytes: 1 << 20,
        proof,
    }
}

fn ready() -> Ready {
    Ready {
        proof: Some([8; 32]),
        received: 12,
        streams: vec![(2, 1 << 20), (4, 0)],
    }
}

/// Each kind of payload: its bytes, and whether bytes are read as one and written back the same.
type Example = (Kind, Vec<u8>, fn(&[u8]) -> bool);

fn examples() -> Vec<Example> {
    let open = Open {
        key: b"a key".to_vec(),
        codec: "!t.tensor".into(),
        total_bytes: 1 << 40,
    };
    let failure = Failure {
        code: ErrorCode::Unavailable,
        message: "no".into(),
    };
    vec![
        (Kind::Hello, hello().encode(), |bytes| {
            Hello::decode(bytes).is_ok_and(|it| it.encode() == bytes)
        }),
        (Kind::Welcome, welcome(Some([7; 32])).encode(), |bytes| {
            Welcome::decode(bytes).is_ok_and(|it| it.encode() == bytes)
        }),
        (Kind::Failure, failure.encode(), |bytes| {
            Failure::decode(Kind::Failure, bytes).is_ok_and(|it| it.encode() == bytes)
        }),
        (Kind::Open, open.encode(), |bytes| {
            Open::decode(bytes).is_ok_and(|it| it.encode() == bytes)
        }),
        (Kind::Ready, ready().encode(), |bytes| {
            Ready::decode(bytes).is_ok_and(|it| it.encode() == bytes)
        }),
        (Kind::Cancel, encode_ids(&[1, u64::MAX]), |bytes| {
            decode_ids(bytes).is_ok_and(|it| encode_ids(&it) == bytes)
        }),
    ]
}

#[test]
fn messages_come_back() {
    for (kind, bytes, is_read) in examples() {
        assert!(is_read(&bytes), "{kind}");
    }
    assert_eq!(Welcome::decode(&welcome(None).encode()), Ok(welcome(None)));
}

#[test]
fn messages_that_are_cut_or_too_long_are_refused() {
    for (kind, bytes, is_read) in examples() {
        // A key, lists of streams and of ids have no length of their own.
        let ends: Vec<usize> = match kind {
            Kind::Open => (0..10).collect(),
            Kind::Ready => (0..bytes.len()).filter(|end| end % 16 != 9).collect(),
            Kind::Cancel => (0..bytes.len()).filter(|end| end % 8 != 0).collect(),
            _ => (0..bytes.len()).collect(),
        };
        for end in ends {
            assert!(!is_read(&bytes[..end]), "{kind}, {end} bytes");
        }
        if kind != Kind::Open {
            assert!(!is_read(&[&bytes[..], &[0]].concat()), "{kind}");
        }
    }
}

#[test]
fn refusals_say_what_was_expected() {
    let mut odd = hello();
    odd.from = "a\nb".into();
    let mut nameless = hello();
    nameless.to = String::new();
    let mut early = hello();
    early.session = 0;
    let mut nobody = hello();
    nobody.incarnation = 0;
    let of = |hello: Hello| Hello::decode(&hello.encode()).unwrap_err().to_string();
    assert_eq!(
        of(odd),
        "in a frame 'hello': sender's name: expected a name of printable text, found '\\n'"
    );
    assert_eq!(
        of(nameless),
        "in a frame 'hello': receiver's name: expected a name of 1 to 255 bytes, found 0"
    );
    assert_eq!(
        of(early),
        "in a frame 'hello': expected a session above 0, found 0"
    );
    assert_eq!(
        of(nobody),
        "in a frame 'hello': expected an incarnation above 0, found 0"
    );
    let failure = |bytes: &[u8]| Failure::decode(Kind::Bye, bytes).unwrap_err().to_string();
    assert_eq!(
        failure(&[28, 0, 0]),
        "in a frame 'bye': expected a code from 0 to 27, found 28"
    );
    assert_eq!(
        failure(&[1, 1, 0, 0xff]),
        "in a frame 'bye': expected UTF-8 in the message"
    );
    assert_eq!(
        failure(&[1, 9, 0, 0]),
        "in a frame 'bye': expected 9 bytes of the message, found 1"
    );
}

#[test]
fn lists_are_bounded_and_in_order() {
    let ready = |streams: Vec<(u64, u64)>| {
        let ready = Ready {
            streams,
            ..Ready::default()
        };
        Ready::decode(&ready.encode())
    };
    assert!(ready(vec![(2, 0), (2, 0)]).is_err());
    assert!(ready((0..MAX_STREAMS as u64).map(|id| (id, 0)).collect()).is_ok());
    assert!(ready((0..=MAX_STREAMS as u64).map(|id| (id, 0)).collect()).is_err());
    assert!(decode_ids(&encode_ids(&vec![1; MAX_CANCELLED])).is_ok());
    assert!(decode_ids(&encode_ids(&vec![1; MAX_CANCELLED + 1])).is_err());
}

#[test]
fn long_messages_of_failures_are_cut_between_characters() {
    let failure = Failure {
        code: ErrorCode::Internal,
        message: "ä".repeat(MAX_FAILURE_BYTES),
    };
    let read = Failure::decode(Kind::Failure, &failure.encode()).expect("it is one");
    assert_eq!(read.message, "ä".repeat(MAX_FAILURE_BYTES / 2));
}
