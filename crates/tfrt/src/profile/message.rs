//! [`Message`]: the wire format of Protocol Buffers, as far as traces need it.
//!
//! A field is a key, `number << 3 | type`, and its content: type 0 is a number of 7 bits a byte,
//! lowest first, type 1 are eight bytes, type 2 is a length and so many bytes.

/// The bytes of a message.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Makes an empty message.
    pub fn new() -> Message {
        Message::default()
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Message {
        self.key(field, 0);
        self.varint(value);
        self
    }

    /// Adds a number of eight bytes.
    #[must_use]
    pub fn fixed(mut self, field: u32, value: u64) -> Message {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, field: u32, value: &str) -> Message {
        self.bytes(field, value.as_bytes())
    }

    /// Adds a message within this one.
    #[must_use]
    pub fn message(self, field: u32, value: &Message) -> Message {
        self.bytes(field, &value.0)
    }

    /// Returns the bytes of the message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_laid_out_as_the_format_says() {
        let inner = Message::new().number(1, 150);
        assert_eq!(inner.as_bytes(), [0x08, 0x96, 0x01]);
        let outer = Message::new()
            .text(2, "testing")
            .message(3, &inner)
            .fixed(47, 1);
        let expected = [
            &b"\x12\x07testing"[..],
            b"\x1a\x03\x08\x96\x01",
            b"\xf9\x02\x01\0\0\0\0\0\0\0",
        ];
        assert_eq!(outer.as_bytes(), expected.concat());
    }
}
