//! [`Bundle`]: a checkpoint in the form of tensor bundles: an index and shards with the elements of its tensors.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;

use super::partition::Slice;
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
    entries: BTreeMap<Vec<u8>, std::ops::Range<usize>>,
    /// The shards that are open; nothing for one that can't be opened, of which an error told.
    shards: BTreeMap<i32, Option<Shard>>,
    /// The bytes that may still be read.
    bytes_left: u64,
}

/// A file with elements of tensors.
struct Shard {
    file: OpenFile,
    n_bytes: u64,
    /// Whether an error told that tensors end beyond the file.
    short_told: bool,
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
            entries.insert(key, place);
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
        let bundle = Bundle {
            external_data: external_data.clone(),
            prefix: prefix.to_owned(),
            n_shards: header.num_shards,
            index,
            entries,
            shards: BTreeMap::new(),
            bytes_left: max_bytes,
        };
        bundle.check_places().map_err(wrong)?;
        Ok(bundle)
    }

    /// Checks that no two tensors share bytes. Entries that can't be decoded are told when they are read.
    fn check_places(&self) -> Result<(), String> {
        let mut places = Vec::with_capacity(self.entries.len());
        for key in self.entries.keys() {
            if let Ok(Some(entry)) = self.entry(key)
                && entry.size > 0
            {
                places.push((entry.shard_id, entry.offset, entry.size, key));
            }
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            let ((shard, start, size, first), (other, next, _, second)) = (pair[0], pair[1]);
            let end = start.saturating_add(size);
            if shard == other && next < end {
                let [first, second] = [first, second].map(|key| {
                    let key = String::from_utf8_lossy(key);
                    shown(&key).into_owned()
                });
                return Err(format!(
                    "puts tensor '{second}' at byte {next} of shard {shard}, where tensor '{first}' has bytes {start} to {end}"
                ));
            }
        }
        Ok(())
    }

    /// Reads the tensor of a key, or a part of it. There is none if its file can't be opened or is too short for it, and an
    /// error said so before.
    pub(super) fn tensor(
        &mut self,
        key: &str,
        slice: Option<&Slice>,
    ) -> Result<Option<Tensor>, Problem> {
        let name = shown(key).into_owned();
        let of_key = |problem: Problem| problem.of(&format!("tensor '{name}' of the checkpoint"));
        let entry = self.entry(key.as_bytes())?.ok_or_else(|| {
            let prefix = shown(&self.prefix);
            error(format!(
                "expected a tensor '{name}' in '{prefix}.index', which has none"
            ))
        });
        let entry = entry?;
        let read = match (slice, &entry.slices[..]) {
            (None, []) => self.read(&entry),
            (Some(slice), parts) if parts.iter().any(|part| Slice::of(part) == *slice) => {
                self.part(key, slice)
            }
            (slice, _) => self.assembled(key, &entry, slice),
        };
        read.map_err(of_key)
    }

    /// Returns the keys of all tensors and parts, in their order.
    pub(super) fn keys(&self) -> Vec<Vec<u8>> {
        self.entries.keys().cloned().collect()
    }

    /// Returns the bytes of a tensor as they are stored.
    pub(super) fn stored(&mut self, entry: &BundleEntry) -> Result<Bytes, Problem> {
        let (Ok(offset), Ok(size)) = (u64::try_from(entry.offset), u64::try_from(entry.size))
        else {
            return Err(error("lies at no place"));
        };
        let bytes = self.bytes(entry.shard_id, offset, size)?;
        let bytes =
            bytes.ok_or_else(|| error("lies in a shard that can't be opened or is too short"))?;
        // Those of strings are of another kind.
        if element::element_type(entry.dtype)? != ElementType::String {
            expect_sum(crc32c::crc32c(&bytes), entry.crc32c)?;
        }
        Ok(bytes)
    }

    /// Returns what the index says of a key.
    pub(super) fn entry(&self, key: &[u8]) -> Result<Option<BundleEntry>, Problem> {
        let Some(place) = self.entries.get(key) else {
            return Ok(None);
        };
        let name = String::from_utf8_lossy(key);
        let name = shown(&name);
        let entry = &self.index[place.clone()];
        gate::check(entry, &messages::BUNDLE_ENTRY)
            .map_err(|problem| problem.of(&format!("tensor '{name}' of the checkpoint")))?;
        let entry = BundleEntry::decode(entry);
        let entry = entry.map_err(|cause| error(format!("tensor '{name}': {cause}")))?;
        Ok(Some(entry))
    }

    /// Reads a part that is stored apart.
    fn part(&mut self, key: &str, slice: &Slice) -> Result<Option<Tensor>, Problem> {
        let entry = self.entry(&slice.key(key))?;
        let entry = entry.ok_or_else(|| error("lacks a part that its entry lists"))?;
        match entry.slices.is_empty() {
            true => self.read(&entry),
            false => Err(error("has a part in parts")),
        }
    }

    /// Reads a tensor that is stored in parts, or as a whole of which a part is asked for.
    fn assembled(
        &mut self,
        key: &str,
        entry: &BundleEntry,
        wanted: Option<&Slice>,
    ) -> Result<Option<Tensor>, Problem> {
        let element = element::element_type(entry.dtype)?;
        if element == ElementType::String {
            return Err(error("has strings in parts, expected them in one piece"));
        }
        let (dims, n_elements) = element::extents(entry.shape.as_deref(), element)?;
        let size = element.size_bytes();
        let mut bytes: Vec<u8> = match &entry.slices[..] {
            [] => match self.read(entry)? {
                Some(tensor) => tensor.bytes().to_vec(),
                None => return Ok(None),
            },
            parts => {
                let n_bytes = n_elements.saturating_mul(size);
                self.take(n_bytes as u64)?;
                let (mut bytes, mut n_found) = (vec![0; n_bytes], 0);
                for part in parts {
                    let slice = Slice::of(part);
                    let Some(tensor) = self.part(key, &slice)? else {
                        return Ok(None);
                    };
                    if slice.dims(&dims).map_err(error)? != tensor.dims || tensor.element != element
                    {
                        return Err(error("has a part of other extents than its place has"));
                    }
                    n_found += tensor.n_elements();
                    slice
                        .runs(&dims, |at, from, len| {
                            let [at, from, len] = [at, from, len].map(|n| n * size);
                            bytes[at..at + len].copy_from_slice(&tensor.bytes()[from..from + len]);
                        })
                        .map_err(error)?;
                }
                if n_found != n_elements {
                    return Err(error(format!(
                        "has parts of {n_found} elements, expected {n_elements}"
                    )));
                }
                bytes
            }
        };
        let mut own = dims.clone();
        if let Some(slice) = wanted {
            own = slice.dims(&dims).map_err(error)?;
            let mut part = Vec::new();
            slice
                .runs(&dims, |at, _, len| {
                    part.extend_from_slice(&bytes[at * size..(at + len) * size]);
                })
                .map_err(error)?;
            bytes = part;
        }
        Ok(Some(Tensor {
            name: String::new(),
            element,
            dims: own,
            data: TensorData::Bytes(bytes.into()),
        }))
    }

    fn take(&mut self, size: u64) -> Result<(), Problem> {
        let left = self.bytes_left;
        self.bytes_left = left
            .checked_sub(size)
            .ok_or_else(|| error(format!("has {size} bytes, of which {left} may be read")))?;
        Ok(())
    }

    fn read(&mut self, entry: &BundleEntry) -> Result<Option<Tensor>, Problem> {
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
        self.take(size)?;
        let Some(bytes) = self.bytes(entry.shard_id, offset, size)? else {
            return Ok(None);
        };
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
        Ok(Some(Tensor {
            name: String::new(),
            element,
            dims,
            data,
        }))
    }

    /// Returns how many tensors the index puts into a shard, and how many of them end beyond so many bytes.
    fn tensors_beyond(&self, shard: i32, n_bytes: u64) -> (usize, usize) {
        let (mut n_tensors, mut n_beyond) = (0, 0);
        for key in self.entries.keys() {
            let Ok(Some(entry)) = self.entry(key) else {
                continue;
            };
            // An entry of a tensor in parts has no bytes; its parts have entries of their own.
            if entry.shard_id != shard || !entry.slices.is_empty() {
                continue;
            }
            n_tensors += 1;
            let end = i128::from(entry.offset) + i128::from(entry.size);
            n_beyond += usize::from(end > i128::from(n_bytes));
        }
        (n_tensors, n_beyond)
    }

    /// Reads a range of bytes of a shard. There are none if an error told before that the shard can't be opened or is too
    /// short: one error tells of all tensors beyond its end.
    fn bytes(&mut self, shard: i32, offset: u64, size: u64) -> Result<Option<Bytes>, Problem> {
        let n_shards = self.n_shards;
        if !(0..n_shards).contains(&shard) {
            return Err(error(format!("lies in shard {shard} of {n_shards}")));
        }
        let location = format!("{}.data-{shard:05}-of-{n_shards:05}", self.prefix);
        if !self.shards.contains_key(&shard) {
            let opened = self.external_data.open(&location);
            let (opened, failed) = match opened {
                Ok((file, n_bytes)) => {
                    let short_told = false;
                    let shard = Shard {
                        file,
                        n_bytes,
                        short_told,
                    };
                    (Some(shard), None)
                }
                Err((message, _)) => (None, Some(error(message))),
            };
            self.shards.insert(shard, opened);
            if let Some(problem) = failed {
                return Err(problem);
            }
        }
        let Some(open) = self.shards.get_mut(&shard).and_then(Option::as_mut) else {
            return Ok(None);
        };
        let n_bytes = open.n_bytes;
        if offset.checked_add(size).is_none_or(|end| end > n_bytes) {
            if std::mem::replace(&mut open.short_told, true) {
                return Ok(None);
            }
            let file = shown(&location);
            let (n_tensors, n_beyond) = self.tensors_beyond(shard, n_bytes);
            return Err(error(format!(
                "takes {size} bytes from byte {offset} of '{file}', which has {n_bytes}: {n_beyond} of its {n_tensors} tensors end beyond the file, which may have been cut short; copy it again"
            )));
        }
        // What fits the file fits the address space.
        let len_bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let read = open.file.read_at(offset, len_bytes);
        let read =
            read.map_err(|cause| error(format!("cannot read '{}': {cause}", shown(&location))));
        read.map(Some)
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
