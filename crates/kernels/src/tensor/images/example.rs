//! A parser of the protobuf message `Example`: named lists of bytes, floats or integers.
//!
//! ```text
//! Example   { 1: Features }
//! Features  { 1: map entries { 1: name, 2: Feature } }
//! Feature   { one of 1: BytesList, 2: FloatList, 3: Int64List }
//! BytesList { 1: bytes, repeated }
//! Int64List { 1: varints, repeated, packed or not }
//! ```
//!
//! A message is a row of fields; each is a varint of its number and wire type, and what the type says: 0 a varint,
//! 1 eight bytes, 2 a length and so many bytes, 5 four bytes. Fields with other numbers are skipped. Of fields that
//! stand twice the last counts, and messages that do are merged, as the encoding demands.

use std::collections::BTreeMap;

use tfrt_host::{Error, Heap, Value};

/// A parsed message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Example {
    features: BTreeMap<String, Feature>,
}

impl Value for Example {
    const NAME: &'static str = "!proto.example";
    type Storage = Heap;
}

/// The list of a name.
#[derive(Clone, Debug, PartialEq)]
enum Feature {
    Bytes(Vec<Vec<u8>>),
    /// A list of floats, which no kernel asks for, or none.
    Other,
    Integers(Vec<i64>),
}

impl Example {
    /// Parses a message.
    pub(super) fn parse(bytes: &[u8]) -> Result<Example, Error> {
        let mut example = Example::default();
        let parsed = example.merge(bytes);
        parsed
            .ok_or_else(|| Error::invalid_argument("failed to parse example.proto from string"))?;
        Ok(example)
    }

    /// Returns the bytes of a feature that has one value.
    pub(super) fn bytes(&self, key: &str) -> Result<&[u8], Error> {
        match self.feature(key)? {
            Feature::Bytes(list) => match &list[..] {
                [bytes] => Ok(bytes),
                list => Err(not_one(key, list.len())),
            },
            _ => Err(other_kind(key, "bytes")),
        }
    }

    /// Returns the integer of a feature that has one value.
    pub(super) fn integer(&self, key: &str) -> Result<i64, Error> {
        match self.feature(key)? {
            Feature::Integers(list) => match &list[..] {
                [integer] => Ok(*integer),
                list => Err(not_one(key, list.len())),
            },
            _ => Err(other_kind(key, "integers")),
        }
    }

    fn feature(&self, key: &str) -> Result<&Feature, Error> {
        self.features.get(key).ok_or_else(|| {
            let key = key.escape_debug();
            Error::not_found(format!("key {key} is not found in the proto"))
        })
    }

    fn merge(&mut self, bytes: &[u8]) -> Option<()> {
        for features in Fields(bytes) {
            let (1, Content::Bytes(features)) = features? else {
                continue;
            };
            for entry in Fields(features) {
                let (1, Content::Bytes(entry)) = entry? else {
                    continue;
                };
                let (mut name, mut feature) = (String::new(), Feature::Other);
                for field in Fields(entry) {
                    match field? {
                        (1, Content::Bytes(bytes)) => {
                            name = str::from_utf8(bytes).ok()?.to_owned();
                        }
                        (2, Content::Bytes(bytes)) => feature = feature.merge(bytes)?,
                        _ => {}
                    }
                }
                self.features.insert(name, feature);
            }
        }
        Some(())
    }
}

impl Feature {
    fn merge(self, bytes: &[u8]) -> Option<Feature> {
        let mut feature = self;
        for field in Fields(bytes) {
            feature = match field? {
                (1, Content::Bytes(bytes)) => {
                    let mut list = match feature {
                        Feature::Bytes(list) => list,
                        _ => Vec::new(),
                    };
                    for value in Fields(bytes) {
                        if let (1, Content::Bytes(bytes)) = value? {
                            list.push(bytes.to_owned());
                        }
                    }
                    Feature::Bytes(list)
                }
                (2, Content::Bytes(_)) => Feature::Other,
                (3, Content::Bytes(bytes)) => {
                    let mut list = match feature {
                        Feature::Integers(list) => list,
                        _ => Vec::new(),
                    };
                    integers(bytes, &mut list)?;
                    Feature::Integers(list)
                }
                _ => feature,
            };
        }
        Some(feature)
    }
}

fn integers(bytes: &[u8], list: &mut Vec<i64>) -> Option<()> {
    for value in Fields(bytes) {
        match value? {
            (1, Content::Varint(integer)) => list.push(integer.cast_signed()),
            (1, Content::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    list.push(varint(&mut packed)?.cast_signed());
                }
            }
            _ => {}
        }
    }
    Some(())
}

/// The content of a field.
enum Content<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes.
    Fixed,
}

/// The fields of a message, each with its number; `None` where the message is damaged, and nothing after that.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Content<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Content<'a>)> {
        let tag = varint(&mut self.0)?;
        let content = match tag & 7 {
            0 => Content::Varint(varint(&mut self.0)?),
            1 => self.bytes(8).map(|_| Content::Fixed)?,
            2 => {
                let len = varint(&mut self.0)?;
                Content::Bytes(self.bytes(usize::try_from(len).ok()?)?)
            }
            5 => self.bytes(4).map(|_| Content::Fixed)?,
            _ => return None,
        };
        // No field has the number 0.
        (tag >> 3 != 0).then_some((tag >> 3, content))
    }

    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Reads a varint: seven bits a byte, the lowest first; the eighth says that there are more.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cold]
fn not_one(key: &str, found: usize) -> Error {
    let key = key.escape_debug();
    Error::invalid_argument(format!("expected one value for key {key}, found {found}"))
}

#[cold]
fn other_kind(key: &str, wanted: &str) -> Error {
    let key = key.escape_debug();
    Error::invalid_argument(format!(
        "expected {wanted} for key {key}, found values of another kind"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let len = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, len], bytes].concat()
    }

    fn feature(name: &str, kind: u8, list: &[u8]) -> Vec<u8> {
        let entry = [field(1, name.as_bytes()), field(2, &field(kind, list))].concat();
        field(1, &entry)
    }

    /// Writes `{image: [b"\xff\x00"], label: [-1], both: [3, 300], text: [b"a", b"b"], floats: [..]}`.
    fn message() -> Vec<u8> {
        let minus_one = [&[8][..], &[0xff; 9], &[1]].concat();
        let features = [
            feature("image", 1, &field(1, b"\xff\x00")),
            feature("label", 3, &minus_one),
            feature("both", 3, &field(1, &[3, 0xac, 2])),
            feature("text", 1, &[field(1, b"a"), field(1, b"b")].concat()),
            feature("floats", 2, &field(1, &[0; 4])),
            feature("none", 3, &[]),
        ];
        field(1, &features.concat())
    }

    #[test]
    fn values_are_found_by_their_keys() {
        let example = Example::parse(&message()).unwrap();
        assert_eq!(example.bytes("image").unwrap(), b"\xff\x00");
        assert_eq!(example.integer("label").unwrap(), -1);
        let complaint = |result: Result<i64, Error>| result.unwrap_err().message().to_owned();
        assert_eq!(
            complaint(example.integer("both")),
            "expected one value for key both, found 2"
        );
        assert_eq!(
            complaint(example.integer("none")),
            "expected one value for key none, found 0"
        );
        assert_eq!(
            complaint(example.integer("floats")),
            "expected integers for key floats, found values of another kind"
        );
        assert_eq!(
            complaint(example.integer("x")),
            "key x is not found in the proto"
        );
        assert!(example.bytes("text").is_err() && example.bytes("label").is_err());
    }

    #[test]
    fn messages_that_stand_twice_are_merged_and_unknown_fields_skipped() {
        let unknown = [
            &[0x78, 5][..],
            &[0x79, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x7d, 0, 0, 0, 0],
        ]
        .concat();
        let more = field(1, &feature("label", 3, &[8, 7]));
        let example = Example::parse(&[message(), unknown, more].concat()).unwrap();
        assert_eq!(example.integer("label").unwrap(), 7);
        assert_eq!(example.bytes("image").unwrap(), b"\xff\x00");
        assert_eq!(Example::parse(&[]).unwrap(), Example::default());
    }

    #[test]
    fn damaged_messages_are_refused() {
        let whole = message();
        for len in 1..whole.len() {
            assert!(Example::parse(&whole[..len]).is_err(), "{len}");
        }
        for damaged in [
            &[0x0b][..],
            &[0x02, 0],
            &[0xff; 11],
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert!(Example::parse(damaged).is_err(), "{damaged:?}");
        }
        // Whatever a byte is changed to, there is an answer.
        for index in 0..whole.len() {
            for byte in 0..=255 {
                let mut changed = whole.clone();
                changed[index] = byte;
                let _ = Example::parse(&changed);
            }
        }
    }
}
