//! [`Slice`]: a part of a tensor of a checkpoint, as partitioned variables are stored.
//!
//! The entry of such a tensor has its whole shape and the places of the parts; each part has an entry of its own, whose key is
//! the name and the place in an encoding that keeps their order.

use super::proto::TensorSlice;
use crate::onnx::problem::shown;

/// The begin and the length along each dimension; a length of -1 is all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice(Vec<(i64, i64)>);

impl Slice {
    pub(super) fn of(proto: &TensorSlice) -> Slice {
        let extents = proto.extent.iter();
        Slice(
            extents
                .map(|extent| (extent.start, extent.length.unwrap_or(-1)))
                .collect(),
        )
    }

    /// Reads the place that an operation asks for: `10 4 0,5:-` are five of ten rows of four; nothing is all.
    pub(super) fn parse(text: &str) -> Result<Option<Slice>, String> {
        let wrong = || format!("asks for the part '{}', which is none", shown(text));
        let Some((_, last)) = text.rsplit_once(' ') else {
            return if text.is_empty() {
                Ok(None)
            } else {
                Err(wrong())
            };
        };
        let mut extents = Vec::new();
        for extent in last.split(':') {
            extents.push(match extent.split_once(',') {
                Some((start, length)) => (
                    start.parse().map_err(|_| wrong())?,
                    length.parse().map_err(|_| wrong())?,
                ),
                None if extent == "-" => (0, -1),
                None => return Err(wrong()),
            });
        }
        Ok(Some(Slice(extents)))
    }

    /// Returns the key under which a part of a tensor is stored.
    pub(super) fn key(&self, name: &str) -> Vec<u8> {
        let mut key = vec![0];
        for byte in name.bytes() {
            match byte {
                0x00 => key.extend([0x00, 0xff]),
                0xff => key.extend([0xff, 0x00]),
                byte => key.push(byte),
            }
        }
        key.extend([0x00, 0x01]);
        let rank = (self.0.len() as u64).to_be_bytes();
        let rank = &rank[rank.iter().take_while(|byte| **byte == 0).count()..];
        key.push(u8::try_from(rank.len()).unwrap_or(0));
        key.extend(rank);
        for (start, length) in &self.0 {
            append_signed(&mut key, *start);
            append_signed(&mut key, *length);
        }
        key
    }

    /// Returns the range along each dimension of a tensor.
    fn ranges(&self, dims: &[usize]) -> Result<Vec<std::ops::Range<usize>>, String> {
        let wrong = || format!("has a part that lies outside of its extents {dims:?}");
        if self.0.len() != dims.len() {
            return Err(wrong());
        }
        let each = self.0.iter().zip(dims);
        each.map(|(&(start, length), &size)| {
            let start = usize::try_from(start).map_err(|_| wrong())?;
            let end = match length {
                -1 => Some(size),
                length => usize::try_from(length)
                    .ok()
                    .and_then(|length| start.checked_add(length)),
            };
            end.filter(|end| start <= *end && *end <= size)
                .map(|end| start..end)
                .ok_or_else(wrong)
        })
        .collect()
    }

    /// Returns the extents of the part of a tensor.
    pub(super) fn dims(&self, dims: &[usize]) -> Result<Vec<usize>, String> {
        let ranges = self.ranges(dims)?;
        Ok(ranges.into_iter().map(|range| range.len()).collect())
    }

    /// Calls a function for each run of elements of the part: with its place in the tensor, in the part, and its length.
    pub(super) fn runs(
        &self,
        dims: &[usize],
        mut each: impl FnMut(usize, usize, usize),
    ) -> Result<(), String> {
        let ranges = self.ranges(dims)?;
        let Some((last, outer)) = ranges.split_last() else {
            each(0, 0, 1);
            return Ok(());
        };
        if ranges.iter().any(|range| range.is_empty()) {
            return Ok(());
        }
        let mut at: Vec<usize> = outer.iter().map(|range| range.start).collect();
        let mut n_done = 0;
        loop {
            let row = at
                .iter()
                .zip(dims)
                .fold(0, |row, (at, size)| row * size + at);
            each(row * dims[dims.len() - 1] + last.start, n_done, last.len());
            n_done += last.len();
            // The next position, the last dimension first.
            let mut axis = outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else {
                    return Ok(());
                };
                axis = next;
                at[axis] += 1;
                if at[axis] < outer[axis].end {
                    break;
                }
                at[axis] = outer[axis].start;
            }
        }
    }
}

/// Appends a number so that greater ones are greater as bytes: as many leading ones as there are bytes, then the sign and the
/// number.
fn append_signed(key: &mut Vec<u8>, number: i64) {
    let size = if number < 0 { !number } else { number };
    let n_bits = 64 - size.leading_zeros() as usize;
    // The first byte has 6 bits of the number, each other one 7 more.
    let n_bytes = (n_bits / 7 + 1).min(10);
    let sign = if number < 0 { 0xff } else { 0 };
    let mut bytes = [sign; 10];
    bytes[2..].copy_from_slice(&number.to_be_bytes());
    let bytes = &mut bytes[10 - n_bytes..];
    for bit in 0..n_bytes {
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
    }
    key.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_keys_keep_their_order() {
        let numbers = [
            i64::MIN,
            -1 << 40,
            -8193,
            -65,
            -64,
            -1,
            0,
            1,
            63,
            64,
            8191,
            8192,
            1 << 40,
            i64::MAX,
        ];
        let keys = numbers.map(|number| {
            let mut key = Vec::new();
            append_signed(&mut key, number);
            key
        });
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(keys[5], [0x7f]);
        assert_eq!(keys[9], [0xc0, 0x40]);
    }

    #[test]
    fn parts_are_runs_of_elements() {
        let slice = Slice::parse("2 3 4 0,2:1,2:-").unwrap().unwrap();
        let mut found = Vec::new();
        slice
            .runs(&[2, 3, 4], |whole, part, len| {
                found.push((whole, part, len))
            })
            .unwrap();
        assert_eq!(found, [(4, 0, 4), (8, 4, 4), (16, 8, 4), (20, 12, 4)]);
        assert_eq!(slice.dims(&[2, 3, 4]).unwrap(), [2, 2, 4]);
        assert!(slice.dims(&[2, 2, 4]).is_err() && slice.dims(&[2]).is_err());
        assert!(Slice::parse("4 0,x").is_err());
    }
}
