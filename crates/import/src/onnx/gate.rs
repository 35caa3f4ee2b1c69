//! The gate in front of the decoder: walks over the bytes of a file, without recursion and with little memory, and
//! refuses files that would take the decoder too much stack or memory.
//!
//! Behind it every length lies in its message, every field has the wire type of its kind, texts
//! are UTF-8, messages nest at most [`MAX_DEPTH`] deep, and what is decoded takes memory in
//! proportion to the file. An error says at which byte and in which field,
//! `graph.node[3].attribute[0].t`.

pub(crate) mod messages;

use crate::{codes, onnx::problem::Problem};

/// The greatest depth of nested messages. A subgraph takes three: node, attribute, graph.
pub(super) const MAX_DEPTH: usize = 95;

/// Bytes of memory that decoding may take in any case.
const FREE_BYTES: usize = 64 << 20;

/// Bytes of memory that decoding may take for each byte of the file. A node as exporters write them has 40 bytes or
/// more and takes 15 times as much.
const BYTES_PER_BYTE: usize = 32;

/// The description of a message: its fields, and its size in memory.
pub(crate) struct Message {
    /// The bytes that the message takes when it is decoded, with the allocator's own.
    pub size: usize,
    pub fields: &'static [Field],
}

/// The description of a field.
pub(crate) struct Field {
    pub number: u64,
    pub name: &'static str,
    pub kind: Kind,
}

/// The kind of a field's value.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Message(&'static Message),
    Text,
    Bytes,
    /// Integers, one by one or packed.
    Varint,
    /// Numbers of four bytes, one by one or packed.
    Fixed32,
    /// Numbers of eight bytes, one by one or packed.
    Fixed64,
}

/// The most fields of a message.
const MAX_FIELDS: usize = 20;

/// A message on the path to the current position: it has begun, and has not ended.
struct OpenMessage {
    message: &'static Message,
    end: usize,
    /// The field that the message is the value of.
    name: &'static str,
    index: usize,
    /// The number of times that each field was met.
    counts: [usize; MAX_FIELDS],
}

/// Checks that bytes are a message that can be decoded.
pub(crate) fn check(bytes: &[u8], message: &'static Message) -> Result<(), Problem> {
    let mut walk = Walk {
        bytes,
        at: 0,
        open: vec![OpenMessage::new(message, bytes.len(), "", 0)],
        decoded: 0,
    };
    while !walk.open.is_empty() {
        walk.step()?;
    }
    Ok(())
}

impl OpenMessage {
    fn new(message: &'static Message, end: usize, name: &'static str, index: usize) -> OpenMessage {
        OpenMessage {
            message,
            end,
            name,
            index,
            counts: [0; MAX_FIELDS],
        }
    }
}

/// The state of the walk over a file.
struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
    open: Vec<OpenMessage>,
    decoded: usize,
}

impl Walk<'_> {
    /// Goes over one field, into a message, or out of one.
    fn step(&mut self) -> Result<(), Problem> {
        let Some(level) = self.open.last() else {
            return Ok(());
        };
        let (message, end) = (level.message, level.end);
        if self.at == end {
            self.open.pop();
            return Ok(());
        }
        let start = self.at;
        let key = self.varint(end)?;
        let (number, wire) = (key >> 3, key & 7);
        let position = message
            .fields
            .iter()
            .position(|field| field.number == number);
        let Some(position) = position else {
            return self.skip(start, number, wire, end);
        };
        let field = &message.fields[position];
        let index = self.count(position);
        self.value(start, field, index, wire, end)
    }

    /// Counts a field of the innermost open message, and returns its index.
    fn count(&mut self, position: usize) -> usize {
        let level = self.open.last_mut();
        let count = level.and_then(|level| level.counts.get_mut(position));
        count.map_or(0, |count| {
            *count += 1;
            *count - 1
        })
    }

    fn value(
        &mut self,
        start: usize,
        field: &'static Field,
        index: usize,
        wire: u64,
        end: usize,
    ) -> Result<(), Problem> {
        match (field.kind, wire) {
            (Kind::Message(message), 2) => {
                let len = self.len(field, index, end)?;
                self.take(message.size)?;
                if self.open.len() > MAX_DEPTH {
                    return Err(self.too_deep());
                }
                self.open
                    .push(OpenMessage::new(message, self.at + len, field.name, index));
                Ok(())
            }
            (Kind::Text, 2) => {
                let len = self.len(field, index, end)?;
                let text = &self.bytes[self.at..self.at + len];
                if let Err(error) = std::str::from_utf8(text) {
                    let at = self.at + error.valid_up_to();
                    let path = self.path(field, index);
                    let message = format!("{path} is not UTF-8 at byte {at}");
                    return Err(Problem::new(codes::NOT_A_MODEL, message));
                }
                self.at += len;
                self.take(len + 2 * size_of::<String>())
            }
            (Kind::Bytes, 2) => {
                let len = self.len(field, index, end)?;
                self.at += len;
                self.take(2 * size_of::<String>())
            }
            (Kind::Varint, 0) => {
                self.varint(end)?;
                self.take(size_of::<u64>())
            }
            (Kind::Fixed32, 5) => self.fixed(4, field, index, end),
            (Kind::Fixed64, 1) => self.fixed(8, field, index, end),
            (Kind::Varint | Kind::Fixed32 | Kind::Fixed64, 2) => {
                self.packed(start, field, index, end)
            }
            _ => {
                let path = self.path(field, index);
                let message = format!(
                    "{path} at byte {start} is {}, expected {}",
                    wire_name(wire),
                    field.kind.name()
                );
                Err(Problem::new(codes::NOT_A_MODEL, message))
            }
        }
    }

    fn fixed(
        &mut self,
        len: usize,
        field: &'static Field,
        index: usize,
        end: usize,
    ) -> Result<(), Problem> {
        if end - self.at < len {
            return Err(self.truncated(&self.path(field, index), len, end));
        }
        self.at += len;
        self.take(len)
    }

    fn packed(
        &mut self,
        start: usize,
        field: &'static Field,
        index: usize,
        end: usize,
    ) -> Result<(), Problem> {
        let len = self.len(field, index, end)?;
        let end = self.at + len;
        let unit = match field.kind {
            Kind::Fixed32 => 4,
            Kind::Fixed64 => 8,
            _ => {
                let before = self.at;
                // Each integer ends in a byte below 128.
                let list = &self.bytes[before..end];
                let n_integers = list.iter().filter(|&&byte| byte < 0x80).count();
                while self.at < end {
                    self.varint(end)?;
                }
                return self.take(n_integers * size_of::<u64>());
            }
        };
        if len % unit != 0 {
            let path = self.path(field, index);
            let message =
                format!("{path} at byte {start} has {len} bytes, expected a multiple of {unit}");
            return Err(Problem::new(codes::NOT_A_MODEL, message));
        }
        self.at = end;
        self.take(len)
    }

    /// Goes over an unknown field.
    fn skip(&mut self, start: usize, number: u64, wire: u64, end: usize) -> Result<(), Problem> {
        if number == 0 {
            let inside = self.inside();
            let message = format!("byte {start} begins a field with the number 0{inside}");
            return Err(Problem::new(codes::NOT_A_MODEL, message));
        }
        let len = match wire {
            0 => return self.varint(end).map(drop),
            1 => 8,
            5 => 4,
            2 => {
                let len = self.varint(end)?;
                usize::try_from(len).unwrap_or(usize::MAX)
            }
            _ => {
                let inside = self.inside();
                let message = format!("byte {start} begins no field{inside}");
                return Err(Problem::new(codes::NOT_A_MODEL, message));
            }
        };
        if end - self.at < len {
            let what = format!("field {number}{}", self.inside());
            return Err(self.truncated(&what, len, end));
        }
        self.at += len;
        Ok(())
    }

    /// Reads a length, and checks that so many bytes follow.
    fn len(&mut self, field: &'static Field, index: usize, end: usize) -> Result<usize, Problem> {
        let len = self.varint(end)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if end - self.at < len {
            return Err(self.truncated(&self.path(field, index), len, end));
        }
        Ok(len)
    }

    fn varint(&mut self, end: usize) -> Result<u64, Problem> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            if self.at >= end {
                let message = format!(
                    "the file ends at byte {end}, within a number that begins at byte {start}{}",
                    self.inside()
                );
                return Err(Problem::new(codes::NOT_A_MODEL, message).help(COPY_AGAIN));
            }
            let byte = self.bytes[self.at];
            self.at += 1;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        let inside = self.inside();
        let message = format!("the number at byte {start} has more than 64 bits{inside}");
        Err(Problem::new(codes::NOT_A_MODEL, message))
    }

    /// Adds to the memory that decoding will take, and refuses too much.
    fn take(&mut self, len: usize) -> Result<(), Problem> {
        self.decoded = self.decoded.saturating_add(len);
        let limit = BYTES_PER_BYTE
            .saturating_mul(self.bytes.len())
            .saturating_add(FREE_BYTES);
        if self.decoded <= limit {
            return Ok(());
        }
        let message = format!(
            "the file's {} bytes would take more than {limit} of memory: most of its parts are empty",
            self.bytes.len()
        );
        Err(Problem::new(codes::MODEL_TOO_LARGE, message))
    }

    fn truncated(&self, what: &str, len: usize, end: usize) -> Problem {
        let message = format!(
            "{what} announces {len} bytes at byte {}, but {} are left",
            self.at,
            end - self.at
        );
        Problem::new(codes::NOT_A_MODEL, message).help(COPY_AGAIN)
    }

    fn too_deep(&self) -> Problem {
        let mut graphs = self.open.iter().filter(|level| level.name == "g");
        let message = match graphs.by_ref().count() {
            0 => format!("messages nest more than {MAX_DEPTH} deep{}", self.inside()),
            n => format!(
                "subgraphs nest more than {n} deep, at {}",
                self.path_of(&self.open)
            ),
        };
        Problem::new(codes::MODEL_TOO_DEEP, message)
    }

    /// Returns the place in the file for an error: ` in graph.node[3]`, or nothing in the outermost message.
    fn inside(&self) -> String {
        match self.path_of(&self.open) {
            path if path.is_empty() => path,
            path => format!(" in {path}"),
        }
    }

    fn path(&self, field: &Field, index: usize) -> String {
        let mut path = self.path_of(&self.open);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(field.name);
        if field.name.ends_with("[]") {
            path.truncate(path.len() - 2);
            path.push_str(&format!("[{index}]"));
        }
        path
    }

    fn path_of(&self, open: &[OpenMessage]) -> String {
        let part = |level: &OpenMessage| match level.name.strip_suffix("[]") {
            Some(name) => format!("{name}[{}]", level.index),
            None => level.name.to_owned(),
        };
        let shown = open.iter().skip(1).take(MAX_SHOWN_DEPTH);
        let mut parts: Vec<String> = shown.map(part).collect();
        if open.len() > MAX_SHOWN_DEPTH + 1 {
            parts.push("..".to_owned());
        }
        parts.join(".")
    }
}

/// The greatest depth of messages whose path an error shows.
const MAX_SHOWN_DEPTH: usize = 12;

const COPY_AGAIN: &str = "the file was probably cut off: copy it again";

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Message(_) => "a message",
            Kind::Text => "a text",
            Kind::Bytes => "bytes",
            Kind::Varint => "an integer",
            Kind::Fixed32 => "a number of 4 bytes",
            Kind::Fixed64 => "a number of 8 bytes",
        }
    }
}

fn wire_name(wire: u64) -> &'static str {
    match wire {
        0 => "an integer",
        1 => "8 bytes",
        2 => "a length with bytes",
        5 => "4 bytes",
        _ => "no field",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        format!("{:?}", check(bytes, &messages::MODEL).unwrap_err())
    }

    #[test]
    fn lengths_beyond_the_end_are_refused_with_their_place() {
        let text = error(&[0x3a, 0x05, 0x0a, 0x09, 0x00]);
        assert!(
            text.contains("graph announces 5 bytes at byte 2, but 3 are left"),
            "{text}"
        );
        let text = error(&[0x3a, 0x03, 0x0a, 0x09, 0x00]);
        assert!(
            text.contains("graph.node[0] announces 9 bytes at byte 4, but 1 are left"),
            "{text}"
        );
    }

    #[test]
    fn fields_of_another_kind_are_refused() {
        let text = error(&[0x38, 0x05]);
        assert!(
            text.contains("graph at byte 0 is an integer, expected a message"),
            "{text}"
        );
        let text = error(&[0x3a, 0x03, 0x12, 0x01, 0xff]);
        assert!(text.contains("graph.name is not UTF-8 at byte 4"), "{text}");
        assert!(error(&[0x7b]).contains("begins no field"));
    }

    #[test]
    fn messages_that_are_almost_empty_take_no_memory_to_speak_of() {
        let nodes = [0x0a, 0x00].repeat(4 << 20);
        let mut file = vec![0x3a, 0x80, 0x80, 0x80, 0x04];
        file.extend(nodes);
        assert!(
            error(&file).contains("would take more than"),
            "{}",
            error(&file)
        );
    }
}
