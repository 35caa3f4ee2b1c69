//! Mutations that keep inputs near to what is accepted.
//!
//! Flipping bits of a file mostly breaks the first count that the gate compares with
//! another, and flipping bits of a text the first word. These know what inputs are
//! made of: [`file()`] knows sections, integers and the graph of a program, [`text()`]
//! knows words and brackets. A search should use both kinds of changes.

mod graph;
mod sections;
mod tokens;

use tfrt_oracle::random::Random;

pub use graph::graph;
pub use sections::sections;
pub use tokens::text;

/// Changes a file, or gives nothing if there is no such change.
pub fn file(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    match random.below(2) {
        0 => graph(bytes, random).or_else(|| sections(bytes, random)),
        _ => sections(bytes, random),
    }
}

/// Changes bytes of any kind: flips one bit, takes, repeats or moves a part, or makes a byte extreme.
pub fn bytes(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    if bytes.is_empty() {
        return vec![random.below(256) as u8];
    }
    let at = random.below(bytes.len());
    let part = at..bytes.len().min(at + 1 + random.below(8));
    match random.below(5) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        2 => drop(bytes.drain(part)),
        3 => {
            let copied = bytes[part].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        _ => bytes.truncate(at),
    }
    bytes
}

/// Changes the first `len` bytes of a buffer in place and returns how many there are then; half of
/// the time, and when `change` has none, `otherwise` does it.
///
/// This has the form that a fuzzer asks for.
pub fn in_place(
    change: fn(&[u8], &mut Random) -> Option<Vec<u8>>,
    buffer: &mut [u8],
    len: usize,
    seed: u32,
    otherwise: impl FnOnce(&mut [u8]) -> usize,
) -> usize {
    let mut random = Random::new(seed.into());
    if random.chance(50) {
        let changed = change(&buffer[..len], &mut random);
        if let Some(changed) = changed.filter(|changed| changed.len() <= buffer.len()) {
            buffer[..changed.len()].copy_from_slice(&changed);
            return changed.len();
        }
    }
    otherwise(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;
    use tfrt_bef::{BefBuffer, BefFile};

    #[test]
    fn many_changed_files_are_accepted() {
        let mut random = Random::new(0);
        let (mut n_tried, mut n_opened, mut n_others) = (0, 0, 0);
        for (_, bytes) in seeds::files()
            .iter()
            .filter(|(_, bytes)| bytes.len() < 2_000)
        {
            for _ in 0..10 {
                let Some(changed) = graph(bytes, &mut random) else {
                    continue;
                };
                n_tried += 1;
                n_others += usize::from(changed != *bytes);
                n_opened += usize::from(BefFile::open(BefBuffer::from_vec(changed)).is_ok());
            }
        }
        assert!(
            n_others * 10 > n_tried * 8,
            "{n_others} of {n_tried} differ"
        );
        assert!(n_opened * 10 > n_tried * 3, "{n_opened} of {n_tried} open");
    }

    #[test]
    fn texts_and_sections_are_changed() {
        let mut random = Random::new(1);
        let text = b"func.func @f(%a: i32) -> i32 { tfrt.return %a : i32 }";
        let texts: Vec<_> = (0..200)
            .filter_map(|_| super::text(text, &mut random))
            .collect();
        assert!(texts.len() > 150);
        assert!(texts.iter().any(|changed| changed != text));
        let (_, bytes) = seeds::files().swap_remove(0);
        let files: Vec<_> = (0..200)
            .filter_map(|_| sections(&bytes, &mut random))
            .collect();
        assert!(files.len() > 150);
        assert!(sections(b"no file", &mut random).is_none());
    }
}
