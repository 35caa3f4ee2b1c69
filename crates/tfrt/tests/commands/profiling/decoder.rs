//! Reads traces as Perfetto does, by the field numbers of its published definitions.

use std::collections::{BTreeMap, HashMap, HashSet};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Begin,
    End,
    Instant,
    Counter,
}

/// An event, with names in place of numbers.
#[derive(Clone, Debug)]
pub struct Event {
    pub at_ns: u64,
    pub kind: Kind,
    pub track: u64,
    pub name: String,
    pub category: String,
    pub notes: HashMap<String, String>,
    pub source_line: u64,
    /// The first flow, or 0.
    pub flow: u64,
}

/// A trace.
#[derive(Debug, Default)]
pub struct Trace {
    pub events: Vec<Event>,
    /// Names of threads and counters by their tracks.
    pub threads: BTreeMap<u64, String>,
    pub counters: BTreeMap<u64, String>,
    /// Names of processes by their tracks, and the tracks in which others lie.
    pub processes: BTreeMap<u64, String>,
    pub parents: BTreeMap<u64, u64>,
}

/// A value of a field.
#[derive(Clone, Copy, Debug)]
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, in order.
struct Fields<'b>(Vec<(u64, Value<'b>)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number is whole");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than ten bytes");
}

impl<'b> Fields<'b> {
    fn of(mut bytes: &'b [u8]) -> Fields<'b> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => {
                    let (word, rest) = bytes.split_first_chunk().expect("eight bytes follow");
                    bytes = rest;
                    Value::Number(u64::from_le_bytes(*word))
                }
                2 => {
                    let len = usize::try_from(varint(&mut bytes)).unwrap();
                    let (content, rest) = bytes.split_at(len);
                    bytes = rest;
                    Value::Bytes(content)
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, value));
        }
        Fields(fields)
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.0.iter().find_map(|(found, value)| match value {
            Value::Number(number) if *found == field => Some(*number),
            _ => None,
        })
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &'b [u8]> + '_ {
        self.0.iter().filter_map(move |(found, value)| match value {
            Value::Bytes(bytes) if *found == field => Some(*bytes),
            _ => None,
        })
    }

    fn message(&self, field: u64) -> Option<Fields<'b>> {
        self.all(field).next().map(Fields::of)
    }

    fn text(&self, field: u64) -> String {
        let bytes = self.all(field).next().unwrap_or_default();
        String::from_utf8(bytes.to_vec()).expect("texts are UTF-8")
    }
}

/// Texts by number, of one kind.
fn interned(data: &Fields<'_>, field: u64) -> HashMap<u64, String> {
    let entries = data.all(field).map(Fields::of);
    entries
        .map(|entry| (entry.number(1).expect("it has a number"), entry.text(2)))
        .collect()
}

impl Trace {
    pub fn read(bytes: &[u8]) -> Trace {
        let mut trace = Trace::default();
        let [mut names, mut categories, mut keys, mut texts] = [const { None }; 4];
        let mut lines: HashMap<u64, u64> = HashMap::new();
        let (mut sequence, mut sequences) = (None, HashSet::new());
        let mut tracks = HashSet::new();
        for packet in Fields::of(bytes).all(1).map(Fields::of) {
            let of = packet.number(10);
            if let Some(data) = packet.message(12) {
                assert!(
                    sequences.insert(of),
                    "each process has a sequence of its own"
                );
                sequence = of;
                assert_eq!(packet.number(13), Some(3), "names begin here");
                categories = Some(interned(&data, 1));
                names = Some(interned(&data, 2));
                keys = Some(interned(&data, 3));
                texts = Some(interned(&data, 29));
                for place in data.all(4).map(Fields::of) {
                    lines.insert(place.number(1).unwrap(), place.number(4).unwrap());
                }
            }
            assert_eq!(
                of, sequence,
                "names of a sequence come before the rest of it"
            );
            if let Some(track) = packet.message(60) {
                let uuid = track.number(1).expect("a track has a number");
                assert!(tracks.insert(uuid), "tracks have numbers of their own");
                if let Some(process) = track.message(3) {
                    trace.processes.insert(uuid, process.text(6));
                }
                trace
                    .parents
                    .extend(track.number(5).map(|parent| (uuid, parent)));
                if let Some(thread) = track.message(4) {
                    trace.threads.insert(uuid, thread.text(5));
                }
                if track.message(8).is_some() {
                    trace.counters.insert(uuid, track.text(2));
                }
            }
            let Some(event) = packet.message(11) else {
                continue;
            };
            let find = |table: &Option<HashMap<u64, String>>, number: Option<u64>| {
                let table = table.as_ref().expect("names come first");
                number.map_or_else(String::new, |number| table[&number].clone())
            };
            let notes = event.all(4).map(Fields::of).map(|note| {
                let value = match note.number(17) {
                    Some(text) => find(&texts, Some(text)),
                    None => note.number(3).expect("text or number").to_string(),
                };
                (find(&keys, note.number(1)), value)
            });
            trace.events.push(Event {
                at_ns: packet.number(8).expect("an event has a time"),
                kind: match event.number(9) {
                    Some(1) => Kind::Begin,
                    Some(2) => Kind::End,
                    Some(3) => Kind::Instant,
                    Some(4) => Kind::Counter,
                    other => panic!("an event of type {other:?}"),
                },
                track: event.number(11).expect("an event has a track"),
                name: find(&names, event.number(10)),
                category: find(&categories, event.number(3)),
                notes: notes.collect(),
                source_line: event.number(34).map_or(0, |place| lines[&place]),
                flow: event.number(47).unwrap_or_default(),
            });
        }
        trace
    }

    /// Returns the beginnings of slices of a category.
    pub fn slices(&self, category: &str) -> impl Iterator<Item = &Event> {
        let begins = self.events.iter().filter(|event| event.kind == Kind::Begin);
        begins.filter(move |event| event.category == category)
    }
}
