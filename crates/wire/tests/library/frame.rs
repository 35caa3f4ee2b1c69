//! Headers: one way to write each, and one error for each way to break it.

use proptest::prelude::*;
use tfrt_wire::frame::{CHUNK_BYTES, FrameError, FrameLimits, HEADER_BYTES, Header, Kind, VERSION};

const LIMITS: FrameLimits = FrameLimits {
    max_message_bytes: 1 << 20,
};

fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, FrameError> {
    Header::decode(bytes, LIMITS)
}

/// Changes bytes of a header and sums it anew, as a peer does that means it.
fn changed(header: Header, at: usize, bytes: &[u8]) -> [u8; HEADER_BYTES] {
    let mut encoded = header.encode();
    encoded[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c::crc32c(&encoded[..60]);
    encoded[60..].copy_from_slice(&crc.to_le_bytes());
    encoded
}

fn refusal(bytes: &[u8; HEADER_BYTES]) -> String {
    decode(bytes).expect_err("it is no header").to_string()
}

#[test]
fn fields_lie_where_the_table_says() {
    let header = Header {
        context: 0x0807_0605_0403_0201,
        incarnation: 0x1817_1615_1413_1211,
        stream: 0x2827_2625_2423_2221,
        sequence: 0x3837_3635_3433_3231,
        offset: 0x4847_4645_4443_4241,
        payload_len_bytes: 0x51,
        payload_crc: 0x6463_6261,
        ..Header::new(Kind::Request)
    };
    let bytes = header.encode();
    assert_eq!(bytes[..8], *b"TFD1\x01\0\x0c\0");
    let fields = [(8, 0x01), (16, 0x11), (24, 0x21), (32, 0x31), (40, 0x41)];
    for (at, first) in fields {
        assert_eq!(bytes[at..at + 8], Vec::from_iter(first..first + 8)[..]);
    }
    assert_eq!(bytes[48..60], *b"\x51\0\0\0\0\0\0\0\x61\x62\x63\x64");
    assert_eq!(decode(&bytes), Ok(header));
}

#[test]
fn each_malformed_header_has_one_clear_error() {
    let data = Header {
        payload_len_bytes: 1,
        ..Header::new(Kind::Data)
    };
    let ping = Header::new(Kind::Ping);
    let cases: &[([u8; HEADER_BYTES], &str)] = &[
        (
            changed(ping, 0, b"GET "),
            "expected a frame that begins with 'TFD1', found 'GET '",
        ),
        (
            changed(ping, 4, &2_u16.to_le_bytes()),
            "expected version 1 of the protocol, found 2",
        ),
        (
            changed(ping, 6, &0_u16.to_le_bytes()),
            "expected a kind of frame from 1 to 16, found 0",
        ),
        (
            changed(ping, 6, &17_u16.to_le_bytes()),
            "expected a kind of frame from 1 to 16, found 17",
        ),
        (
            changed(ping, 24, &[9]),
            "expected no stream in a frame 'ping', found 0x9",
        ),
        (
            changed(ping, 48, &[1]),
            "expected 0 to 0 bytes in a frame 'ping', found 1",
        ),
        (
            changed(ping, 56, &[1]),
            "expected no checksum of the payload in a frame 'ping', found 0x1",
        ),
        (
            changed(data, 48, &[0]),
            "expected 1 to 1048576 bytes in a frame 'data', found 0",
        ),
        (
            changed(data, 48, &u32::MAX.to_le_bytes()),
            "expected 1 to 1048576 bytes in a frame 'data', found 4294967295",
        ),
        (
            changed(Header::new(Kind::Request), 48, &[0xff, 0xff, 0xff, 0x7f]),
            "expected 0 to 1048576 bytes in a frame 'request', found 2147483647",
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(refusal(bytes), *message);
    }
    let mut torn = ping.encode();
    torn[33] ^= 1;
    let message = refusal(&torn);
    assert!(message.starts_with("expected a header with the crc32c 0x"));
}

#[test]
fn another_version_is_told_before_its_checksum() {
    let mut bytes = Header::new(Kind::Ping).encode();
    bytes[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes());
    assert_eq!(decode(&bytes), Err(FrameError::Version(VERSION + 1)));
}

#[test]
fn limits_of_messages_end_at_the_protocols() {
    let endless = FrameLimits {
        max_message_bytes: u32::MAX,
    };
    let long = Header {
        payload_len_bytes: (64 << 20) + 1,
        ..Header::new(Kind::Reply)
    };
    assert!(Header::decode(&long.encode(), endless).is_err());
}

#[test]
fn every_flipped_bit_is_noticed() {
    for kind in Kind::ALL {
        let header = Header {
            payload_len_bytes: if kind == Kind::Cancel { 8 } else { 0 },
            ..Header::new(kind)
        };
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bytes).is_err(), "{kind}, bit {bit}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written_as_it_was(
        kind in 0..Kind::ALL.len(),
        fields in any::<[u64; 5]>(),
        kept in any::<[bool; 6]>(),
        len in 0..=2 * CHUNK_BYTES as u32,
        crc in any::<u32>(),
    ) {
        let keep = |index: usize| if kept[index] { fields[index] } else { 0 };
        let header = Header {
            context: keep(0),
            incarnation: keep(1),
            stream: keep(2),
            sequence: keep(3),
            offset: keep(4),
            payload_len_bytes: if kept[5] { len } else { 0 },
            payload_crc: crc,
            ..Header::new(Kind::ALL[kind])
        };
        if let Ok(read) = decode(&header.encode()) {
            prop_assert_eq!(read, header);
            prop_assert_eq!(read.encode(), header.encode());
        }
    }
}
