//! Mutations of files that know sections, words and integers of variable length.

use tfrt_bef::layout::{MAGIC, SectionId, VERSION};
use tfrt_bef::{Payload, assemble, varint};
use tfrt_oracle::random::Random;

/// A section, taken apart without believing it.
#[derive(Clone, Debug)]
struct Section {
    id: u8,
    alignment: usize,
    bytes: Vec<u8>,
}

/// Changes one section or the list of sections; gives nothing for bytes without sections.
pub fn sections(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut sections = split(bytes)?;
    for _ in 0..1 + random.below(3) {
        let at = random.below(sections.len());
        match random.below(12) {
            0 => {
                sections.remove(at);
            }
            1 => {
                let to = random.below(sections.len());
                sections.swap(at, to);
            }
            2 => {
                let ids = SectionId::ALL;
                sections[at].id = *random.pick(&ids) as u8;
            }
            3 => sections[at].alignment = *random.pick(&[1, 2, 4, 8]),
            4 => cut(&mut sections[at].bytes, random),
            5 => copy(&mut sections, at, random),
            6..9 => word(&mut sections[at].bytes, random),
            _ => integer(&mut sections[at].bytes, random),
        }
        if sections.is_empty() {
            break;
        }
    }
    let sections: Vec<(u8, Payload)> = sections
        .into_iter()
        .map(|section| {
            (
                section.id,
                Payload::from_bytes(section.bytes, section.alignment),
            )
        })
        .collect();
    Some(assemble(&sections))
}

/// Takes a file apart as far as its heads make sense.
fn split(bytes: &[u8]) -> Option<Vec<Section>> {
    let start = MAGIC.len() + 1;
    if !bytes.starts_with(&MAGIC) || bytes.get(MAGIC.len()) != Some(&VERSION) {
        return None;
    }
    let mut sections = Vec::new();
    let mut at = start;
    while let Some(&id) = bytes.get(at) {
        let Ok((head, len)) = varint::read(&bytes[at + 1..]) else {
            break;
        };
        at += 1 + len;
        let mut alignment = 1;
        if head & 1 == 1 {
            alignment = usize::from(*bytes.get(at)?).next_power_of_two().min(8);
            at = (at + 1).next_multiple_of(alignment);
        }
        let len = usize::try_from(head >> 1).ok()?;
        let start = at.min(bytes.len());
        let end = start.saturating_add(len).min(bytes.len());
        let bytes = bytes[start..end].to_vec();
        at = end;
        sections.push(Section {
            id,
            alignment,
            bytes,
        });
    }
    (!sections.is_empty()).then_some(sections)
}

/// Returns a number at the edge of a range, where code is often wrong.
fn edge(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => 0,
        1 => 1,
        2 => 1 << random.below(64),
        3 => (1 << random.below(64)) - 1,
        4 => u64::from(u32::MAX),
        5 => u64::MAX,
        _ => random.bits() % 16,
    }
}

/// Changes a word at an aligned place.
fn word(bytes: &mut [u8], random: &mut Random) {
    let n_words = bytes.len() / 4;
    if n_words == 0 {
        return;
    }
    let word = &mut bytes[4 * random.below(n_words)..][..4];
    let old = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    let new = match random.below(4) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old ^ 1 << random.below(32),
        // The low half of an edge is an edge.
        _ => edge(random) as u32,
    };
    word.copy_from_slice(&new.to_le_bytes());
}

/// Changes an integer of variable length, whose length may change too.
fn integer(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return bytes.push(random.bits().to_le_bytes()[0]);
    }
    let mut at = random.below(bytes.len());
    // Back to the start of an integer.
    while at > 0 && bytes[at - 1] & 0x80 != 0 {
        at -= 1;
    }
    let (old, len) = varint::read(&bytes[at..]).unwrap_or((0, 1));
    let new = match random.below(6) {
        0 | 1 => old.wrapping_add(1),
        2 | 3 => old.wrapping_sub(1),
        4 => old ^ 1 << random.below(8),
        _ => edge(random),
    };
    let mut written = Vec::new();
    varint::write(&mut written, new);
    if random.chance(3) {
        // Longer than it needs to be.
        written.insert(0, 0x80);
    }
    bytes.splice(at..at + len, written);
}

/// Takes some bytes out, or says some twice.
fn cut(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let start = random.below(bytes.len());
    let len = 1 + random.below((bytes.len() - start).min(16));
    if random.chance(50) {
        bytes.drain(start..start + len);
    } else {
        let again = bytes[start..start + len].to_vec();
        bytes.splice(start..start, again);
    }
}

/// Copies bytes of one section over those of another.
fn copy(sections: &mut [Section], at: usize, random: &mut Random) {
    let from = sections[random.below(sections.len())].bytes.clone();
    let to = &mut sections[at].bytes;
    let len = from.len().min(to.len()).min(1 + random.below(32));
    if len == 0 {
        return;
    }
    let source = random.below(from.len() - len + 1);
    let target = random.below(to.len() - len + 1);
    to[target..target + len].copy_from_slice(&from[source..source + len]);
}
