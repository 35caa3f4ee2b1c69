//! [`Bundle`]: a checkpoint in the form of tensor bundles: an index and shards with the elements of its tensors.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;

use super::proto::{BundleEntry, BundleHeader};
use super::{element, messages, table};
use crate::codes;
use crate::onnx::external::{ExternalData, OpenFile};
use crate::onnx::gate;
use crate::onnx::problem::{Problem, shown};
use crate::onnx::{ElementType, Tensor, TensorData};

/// A checkpoint whose index was read. Tensors are read one by one, as they are asked for.
pub(super) struct Bundle {
    external_data: ExternalData,
    /// The path of the files, without their endings.
    prefix: String,
    n_shards: i32,
    index: Vec<u8>,
    /// The places of entries in the index, by key.
    entries: BTreeMap<String, std::ops::Range<usize>>,
    /// The shards that are open, with their lengths.
    shards: BTreeMap<i32, (OpenFile, u64)>,
    /// The bytes that may still be read.
    bytes_left: u64,
}

/// The most bytes of an index. One of a thousand variables has 100 kB.
const MAX_INDEX_BYTES: u64 = 1 << 28;

fn error(message: impl Into<String>) -> Problem {
    Problem::new(codes::EXTERNAL_DATA, message)
}

impl Bundle {
    /// Reads the index of the checkpoint whose files begin with `prefix`; tensors may have so many bytes, all together.
    pub(super) fn open(
        external_data: &ExternalData,
        prefix: &str,
        max_bytes: u64,
    ) -> Result<Bundle, Problem> {
        let file = format!("{prefix}.index");
        let index = external_data.read(&file, MAX_INDEX_BYTES.min(max_bytes));
        let index = index.map_err(error)?;
        let wrong = |message: String| error(format!("'{}' {message}", shown(&file)));
        let mut entries = BTreeMap::new();
        let mut header = None;
        for (key, place) in table::read(&index).map_err(wrong)? {
            if key.is_empty() {
                header = Some(place);
                continue;
            }
            // Keys that are no text are those of parts of tensors.
            if let Ok(key) = String::from_utf8(key) {
                entries.insert(key, place);
            }
        }
        let header = header.ok_or_else(|| wrong("has no header".to_owned()))?;
        let header = &index[header];
        gate::check(header, &messages::BUNDLE_HEADER)?;
        let header = BundleHeader::decode(header);
        let header = header.map_err(|cause| wrong(format!("has no header: {cause}")))?;
        if header.endianness != 0 {
            return Err(wrong(
                "is of a big-endian machine, expected little-endian elements".to_owned(),
            ));
        }
        Ok(Bundle {
            external_data: external_data.clone(),
            prefix: prefix.to_owned(),
            n_shards: header.num_shards,
            index,
            entries,
            shards: BTreeMap::new(),
            bytes_left: max_bytes,
        })
    }

    /// Reads the tensor of a key.
    pub(super) fn tensor(&mut self, key: &str) -> Result<Tensor, Problem> {
        let name = shown(key).into_owned();
        let of_key = |problem: Problem| problem.of(&format!("tensor '{name}' of the checkpoint"));
        let Some(place) = self.entries.get(key) else {
            let prefix = shown(&self.prefix);
            let message = format!("expected a tensor '{name}' in '{prefix}.index', which has none");
            return Err(error(message));
        };
        let entry = &self.index[place.clone()];
        gate::check(entry, &messages::BUNDLE_ENTRY).map_err(of_key)?;
        let entry = BundleEntry::decode(entry);
        let entry = entry.map_err(|cause| error(format!("tensor '{name}': {cause}")))?;
        self.read(&entry).map_err(of_key)
    }

    fn read(&mut self, entry: &BundleEntry) -> Result<Tensor, Problem> {
        if !entry.slices.is_empty() {
            return Err(error(
                "is stored in parts, as a partitioned variable is: expected it in one piece",
            ));
        }
        let element = element::element_type(entry.dtype)?;
        let (dims, n_elements) = element::extents(entry.shape.as_deref(), element)?;
        let (Ok(offset), Ok(size)) = (u64::try_from(entry.offset), u64::try_from(entry.size))
        else {
            let (offset, size) = (entry.offset, entry.size);
            return Err(error(format!("lies at byte {offset}, {size} bytes long")));
        };
        let expected = (n_elements as u64).saturating_mul(element.size_bytes() as u64);
        if element != ElementType::String && size != expected {
            let ty = element.name();
            let message =
                format!("has {size} bytes, expected {expected} for {n_elements} of type {ty}");
            return Err(error(message));
        }
        if size > self.bytes_left {
            let left = self.bytes_left;
            return Err(error(format!(
                "has {size} bytes, of which {left} may be read"
            )));
        }
        self.bytes_left -= size;
        let bytes = self.bytes(entry.shard_id, offset, size)?;
        let data = match element {
            ElementType::String => TensorData::Strings(strings(&bytes, n_elements, entry.crc32c)?),
            _ => {
                expect_sum(crc32c::crc32c(&bytes), entry.crc32c)?;
                match element {
                    ElementType::Bool if bytes.iter().any(|byte| *byte > 1) => {
                        let truth = bytes.iter().map(|byte| u8::from(*byte != 0));
                        TensorData::Bytes(truth.collect())
                    }
                    _ => TensorData::Bytes(bytes),
                }
            }
        };
        Ok(Tensor {
            name: String::new(),
            element,
            dims,
            data,
        })
    }

    /// Reads a range of bytes of a shard.
    fn bytes(&mut self, shard: i32, offset: u64, size: u64) -> Result<Arc<[u8]>, Problem> {
        let n_shards = self.n_shards;
        if !(0..n_shards).contains(&shard) {
            return Err(error(format!("lies in shard {shard} of {n_shards}")));
        }
        let location = format!("{}.data-{shard:05}-of-{n_shards:05}", self.prefix);
        if !self.shards.contains_key(&shard) {
            let opened = self.external_data.open(&location);
            let opened = opened.map_err(|(message, _)| error(message))?;
            self.shards.insert(shard, opened);
        }
        let (file, len) = self.shards.get_mut(&shard).expect("it was opened above");
        if offset.checked_add(size).is_none_or(|end| end > *len) {
            let file = shown(&location);
            return Err(error(format!(
                "takes {size} bytes from byte {offset} of '{file}', which has {len}"
            )));
        }
        // What fits the file fits the address space.
        let len_bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let read = file.read_at(offset, len_bytes);
        read.map_err(|cause| error(format!("cannot read '{}': {cause}", shown(&location))))
    }
}

fn expect_sum(crc: u32, stated: u32) -> Result<(), Problem> {
    match table::masked(crc) == stated {
        true => Ok(()),
        false => Err(error("has a wrong checksum: the file is damaged")),
    }
}

/// Decodes strings: their lengths as varints, a checksum of these (of four bytes each, or eight where four don't do), then
/// their bytes.
fn strings(bytes: &[u8], n: usize, stated: u32) -> Result<Vec<Arc<[u8]>>, Problem> {
    let short = || error("ends within a string");
    // Each takes a byte at least.
    if n > bytes.len() {
        return Err(short());
    }
    let (mut at, mut lengths, mut crc) = (0, Vec::with_capacity(n), 0);
    for _ in 0..n {
        let (mut length, mut shift) = (0_u64, 0);
        loop {
            let byte = *bytes.get(at).ok_or_else(short)?;
            at += 1;
            length |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
            if shift > 56 {
                return Err(short());
            }
        }
        crc = match u32::try_from(length) {
            Ok(small) => crc32c::crc32c_append(crc, &small.to_le_bytes()),
            Err(_) => crc32c::crc32c_append(crc, &length.to_le_bytes()),
        };
        lengths.push(length);
    }
    let sum = bytes.get(at..at + 4).ok_or_else(short)?;
    expect_sum(crc, u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]))?;
    crc = crc32c::crc32c_append(crc, sum);
    at += 4;
    let mut all = Vec::with_capacity(n);
    for length in lengths {
        let length = usize::try_from(length).map_err(|_| short())?;
        let end = at.checked_add(length).ok_or_else(short)?;
        let text = bytes.get(at..end).ok_or_else(short)?;
        crc = crc32c::crc32c_append(crc, text);
        all.push(Arc::from(text));
        at = end;
    }
    expect_sum(crc, stated)?;
    Ok(all)
}
