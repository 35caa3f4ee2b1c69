//! Tests with encoded values of all types, whole, cut and changed: each is read as it was written, or refused within
//! limits.

use tfrt_fuzz::values::{MAX_BYTES, decode, examples, with_host};
use tfrt_oracle::random::Random;

use crate::held;
use crate::own_process::in_own_process;

/// Decodes, and fails if more memory was held than the allocator of the host may give and some of the length.
fn bounded(bytes: &[u8]) {
    let most = held::at_most(|| {
        decode(bytes);
    });
    let allowed = MAX_BYTES + (64 << 10) + 64 * bytes.len();
    assert!(most <= allowed, "{most} bytes for {}", bytes.len());
}

#[test]
fn every_codec_has_an_example() {
    let examples = examples();
    for codec in with_host(|host| host.codecs().list()) {
        let name = codec.type_name.as_bytes();
        let is_of = |bytes: &Vec<u8>| bytes.windows(name.len()).any(|window| window == name);
        assert!(examples.iter().any(is_of), "{codec}");
    }
}

#[test]
fn changed_bytes_of_every_codec_are_refused_or_come_back() {
    in_own_process(
        "values::changed_bytes_of_every_codec_are_refused_or_come_back",
        change_bytes_of_every_codec,
    );
}

fn change_bytes_of_every_codec() {
    let examples = examples();
    let mut random = Random::new(7);
    for bytes in &examples {
        bounded(bytes);
        // The last bytes of a large value are elements, of which some are enough.
        for len in (0..bytes.len()).filter(|len| *len < 512 || len % 97 == 0) {
            bounded(&bytes[..len]);
            let mut changed = bytes.clone();
            for change in [1, 0x80, 0xff] {
                changed[len] ^= change;
                bounded(&changed);
                changed[len] ^= change;
            }
        }
        for _ in 0..200 {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(changed.len().min(512));
                match random.below(4) {
                    0 => changed[at] = 0xff,
                    1 => changed[at] = 0,
                    2 => changed.insert(at, random.bits() as u8),
                    _ => {
                        let other = &examples[random.below(examples.len())];
                        let from = other.len().min(at);
                        changed.truncate(at);
                        changed.extend_from_slice(&other[from..]);
                    }
                }
                if changed.is_empty() {
                    break;
                }
            }
            bounded(&changed);
        }
    }
}
