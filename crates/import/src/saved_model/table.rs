//! The reader of a checkpoint's index: a table of keys and values, in the format of LevelDB.
//!
//! ```text
//! file:  block.. metaindex index footer
//! block: entries, where key prefixes begin anew (u32 each), the number of these (u32)
//!        behind it: kind (0: plain), checksum of block and kind (crc32c, masked, u32)
//! entry: bytes shared with the key before, further bytes of the key, bytes of the value (varints), both
//! ```
//!
//! The last 48 bytes are the footer: the handles (offset and size, as varints) of metaindex and index, whose values are the
//! handles of the other blocks, and a magic number. Each key is greater than the one before, and each block is a part of the file
//! of its own, so that a table takes memory in proportion to the file.

/// The entries of a table, sorted by keys.
pub(super) type Entries = Vec<(Vec<u8>, std::ops::Range<usize>)>;

const FOOTER_BYTES: usize = 48;
const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();

/// The bytes behind a block: its kind and its checksum.
const TRAILER_BYTES: usize = 5;

/// The longest key. Names of variables are shorter.
const MAX_KEY_BYTES: usize = 1 << 16;

/// Reads all keys of a table, with the places of their values in the bytes.
///
/// # Errors
///
/// A message that tells the first fault of the bytes, with its place.
pub(super) fn read(bytes: &[u8]) -> Result<Entries, String> {
    let end = bytes.len().checked_sub(FOOTER_BYTES);
    let end = end.ok_or_else(|| {
        let found = bytes.len();
        format!("has {found} bytes, expected {FOOTER_BYTES} or more")
    })?;
    let footer = Cursor {
        bytes,
        at: end,
        end: bytes.len(),
    };
    if bytes[bytes.len() - MAGIC.len()..] != MAGIC {
        let at = bytes.len() - MAGIC.len();
        return Err(format!(
            "is no index of a checkpoint: byte {at} begins no magic number"
        ));
    }
    let mut footer = footer;
    footer.handle()?;
    let index = footer.handle()?;
    let mut blocks = Vec::new();
    block(bytes, index, end, &mut blocks)?;
    let mut entries = Entries::new();
    let mut past = 0;
    for (_, handle) in blocks {
        let mut handle = Cursor {
            bytes,
            at: handle.start,
            end: handle.end,
        };
        let place = handle.handle()?;
        if place.0 < past {
            let at = place.0;
            return Err(format!(
                "has a block at byte {at}, which overlaps the one before"
            ));
        }
        past = block(bytes, place, end, &mut entries)?;
    }
    Ok(entries)
}

/// Reads the entries of a block; returns the offset behind it.
fn block(
    bytes: &[u8],
    (start, size): (usize, usize),
    file_end: usize,
    entries: &mut Entries,
) -> Result<usize, String> {
    let end = start.checked_add(size);
    let past = end.and_then(|end| end.checked_add(TRAILER_BYTES));
    let (end, past) = match (end, past) {
        (Some(end), Some(past)) if past <= file_end => (end, past),
        _ => {
            return Err(format!(
                "has a block of {size} bytes at byte {start}, beyond its {file_end} bytes of blocks"
            ));
        }
    };
    let kind = bytes[end];
    let stated = u32::from_le_bytes([
        bytes[end + 1],
        bytes[end + 2],
        bytes[end + 3],
        bytes[end + 4],
    ]);
    if masked(crc32c::crc32c(&bytes[start..=end])) != stated {
        return Err(format!(
            "has a block at byte {start} whose checksum is wrong: the file is damaged"
        ));
    }
    if kind != 0 {
        return Err(format!(
            "has a block at byte {start} that is compressed (kind {kind}), expected a plain one"
        ));
    }
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    };
    let n_restarts = size
        .checked_sub(4)
        .and_then(|_| word(end - 4))
        .and_then(|n| usize::try_from(n).ok());
    let restarts = n_restarts.and_then(|n| n.checked_mul(4)?.checked_add(4));
    let data = restarts.and_then(|len| size.checked_sub(len));
    let Some(data) = data else {
        return Err(format!(
            "has a block at byte {start} that is too short for its restarts"
        ));
    };
    let mut cursor = Cursor {
        bytes,
        at: start,
        end: start + data,
    };
    let mut key: Vec<u8> = Vec::new();
    let mut is_first = entries.is_empty();
    while cursor.at < cursor.end {
        let at = cursor.at;
        let [shared, more, value] = [cursor.size()?, cursor.size()?, cursor.size()?];
        let left = cursor.end - cursor.at;
        let fits = more.checked_add(value).is_some_and(|len| len <= left);
        if shared > key.len() || !fits || shared + more > MAX_KEY_BYTES {
            return Err(format!(
                "has an entry at byte {at} that does not fit its block"
            ));
        }
        key.truncate(shared);
        key.extend_from_slice(&bytes[cursor.at..cursor.at + more]);
        cursor.at += more;
        let before = entries.last().map(|(key, _)| key);
        if !is_first && before.is_some_and(|before| *before >= key) {
            return Err(format!(
                "has a key at byte {at} that is not greater than the one before"
            ));
        }
        is_first = false;
        entries.push((key.clone(), cursor.at..cursor.at + value));
        cursor.at += value;
    }
    Ok(past)
}

/// Returns a checksum as files have it.
pub(super) fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A position in a part of the bytes.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    end: usize,
}

impl Cursor<'_> {
    fn handle(&mut self) -> Result<(usize, usize), String> {
        Ok((self.size()?, self.size()?))
    }

    /// Reads a number of bytes, or an offset.
    fn size(&mut self) -> Result<usize, String> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            if self.at >= self.end {
                return Err(format!("ends within a number that begins at byte {start}"));
            }
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(value)
                    .map_err(|_| format!("has too large a number at byte {start}"));
            }
        }
        Err(format!("has too large a number at byte {start}"))
    }
}

/// The entries of a block between those whose keys are written as a whole.
const RESTART_INTERVAL: usize = 16;

/// The bytes from which on a block ends.
const BLOCK_BYTES: usize = 1 << 18;

/// Writes a table of keys, each greater than the one before, and values.
pub(super) fn write(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut index = Vec::new();
    let (mut first, mut n_bytes) = (0, 0);
    for (at, (key, value)) in entries.iter().enumerate() {
        n_bytes += key.len() + value.len();
        if n_bytes >= BLOCK_BYTES || at + 1 == entries.len() {
            let handle = append_block(&mut file, &entries[first..=at]);
            index.push((key.clone(), handle));
            (first, n_bytes) = (at + 1, 0);
        }
    }
    let meta = append_block(&mut file, &[]);
    let index = append_block(&mut file, &index);
    let mut footer = [meta, index].concat();
    footer.resize(FOOTER_BYTES - MAGIC.len(), 0);
    file.extend(footer);
    file.extend(MAGIC);
    file
}

/// Appends a block; returns its handle.
fn append_block(file: &mut Vec<u8>, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let start = file.len();
    let mut restarts: Vec<u32> = Vec::new();
    let mut before: &[u8] = &[];
    for (index, (key, value)) in entries.iter().enumerate() {
        let is_restart = index % RESTART_INTERVAL == 0;
        if is_restart {
            restarts.push(u32::try_from(file.len() - start).unwrap_or(u32::MAX));
        }
        let pairs = before
            .iter()
            .zip(key)
            .take_while(|(own, other)| own == other);
        let shared = if is_restart { 0 } else { pairs.count() };
        for size in [shared, key.len() - shared, value.len()] {
            append_size(file, size);
        }
        file.extend_from_slice(&key[shared..]);
        file.extend_from_slice(value);
        before = key;
    }
    if restarts.is_empty() {
        restarts.push(0);
    }
    let n_restarts = u32::try_from(restarts.len()).unwrap_or(u32::MAX);
    for word in restarts.into_iter().chain([n_restarts]) {
        file.extend(word.to_le_bytes());
    }
    let size = file.len() - start;
    file.push(0);
    let sum = masked(crc32c::crc32c(&file[start..]));
    file.extend(sum.to_le_bytes());
    let mut handle = Vec::new();
    append_size(&mut handle, start);
    append_size(&mut handle, size);
    handle
}

fn append_size(into: &mut Vec<u8>, mut size: usize) {
    while size >= 0x80 {
        into.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    into.push(size as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_several_blocks_are_read_as_they_were_written() {
        let entry = |n: u32| {
            (
                format!("key/{n:05}").into_bytes(),
                vec![7; 300 + n as usize % 5],
            )
        };
        let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..2000).map(entry).collect();
        let file = write(&entries);
        let read: Vec<(Vec<u8>, Vec<u8>)> = super::read(&file)
            .unwrap()
            .into_iter()
            .map(|(key, place)| (key, file[place].to_vec()))
            .collect();
        assert!(read == entries);
    }
}
