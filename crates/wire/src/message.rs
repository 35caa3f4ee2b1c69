//! The payloads of frames that are not the caller's: handshakes, what a value is, failures.
//!
//! A text is its length (u16) and its UTF-8; a number little-endian. Each payload is read whole: what is left over is
//! a mistake, so that there is one way to write a message.

use tfrt_async::{Error, ErrorCode};

use crate::frame::{FrameError, Kind};

/// The most bytes of a task's name.
pub const MAX_NAME_BYTES: usize = 255;

/// The most bytes of a message of a failure; the rest is cut off.
pub const MAX_FAILURE_BYTES: usize = 2 << 10;

/// The most streams of one direction that a peer has at a time.
pub const MAX_STREAMS: usize = 1_024;

/// The most ids in a frame that cancels requests.
pub const MAX_CANCELLED: usize = 1_024;

/// Random bytes that a handshake's proof covers.
pub type Nonce = [u8; 32];

/// The first message of who dials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The name of who dials.
    pub from: String,
    /// The name of whom it means to reach.
    pub to: String,
    /// The incarnation of who dials: random, new with each start of its process.
    pub incarnation: u128,
    /// The number of the session that it has or wants.
    pub session: u64,
    /// The incarnation that the session is with; 0 if it has not begun.
    pub bound_to: u128,
    /// Random bytes for the proof.
    pub nonce: Nonce,
    /// The longest request or reply that it takes.
    pub max_message_bytes: u32,
    /// Whether it proves a shared secret, and asks for a proof.
    pub has_secret: bool,
    /// Whether payloads of values have checksums.
    pub sums_data: bool,
}

/// The answer to a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The name of who answers.
    pub from: String,
    /// Its incarnation.
    pub incarnation: u128,
    /// The number of the session: that of the hello, or a new one.
    pub session: u64,
    /// Random bytes for the proof.
    pub nonce: Nonce,
    /// The longest request or reply that it takes.
    pub max_message_bytes: u32,
    /// The proof of the shared secret, if there is one.
    pub proof: Option<[u8; 32]>,
}

/// The last message of a handshake: what its sender has received in this session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// The proof of the shared secret; only of who dials, and if there is one.
    pub proof: Option<[u8; 32]>,
    /// The number up to which numbered frames have been received.
    pub received: u64,
    /// Streams that have begun and are not complete, with the bytes that are there.
    pub streams: Vec<(u64, u64)>,
}

/// A description of a value that is to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The key under which the receiver waits for it.
    pub key: Vec<u8>,
    /// The codec by which it is to be read.
    pub codec: String,
    /// The length of the value.
    pub total_bytes: u64,
}

/// An error that travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub code: ErrorCode,
    /// The message.
    pub message: String,
}

impl Hello {
    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.text(&self.from);
        to.text(&self.to);
        to.bytes(&self.incarnation.to_le_bytes());
        to.bytes(&self.session.to_le_bytes());
        to.bytes(&self.bound_to.to_le_bytes());
        to.bytes(&self.nonce);
        to.bytes(&self.max_message_bytes.to_le_bytes());
        to.bytes(&[u8::from(self.has_secret), u8::from(self.sums_data)]);
        to.0
    }

    /// Reads the message.
    ///
    /// # Errors
    ///
    /// If the bytes are no hello.
    pub fn decode(bytes: &[u8]) -> Result<Hello, FrameError> {
        let mut from = Reader::new(Kind::Hello, bytes);
        let hello = Hello {
            from: from.name("sender's name")?,
            to: from.name("receiver's name")?,
            incarnation: from.incarnation()?,
            session: u64::from_le_bytes(from.array("session")?),
            bound_to: u128::from_le_bytes(from.array("incarnation that is known")?),
            nonce: from.array("nonce")?,
            max_message_bytes: u32::from_le_bytes(from.array("length of messages")?),
            has_secret: from.flag("flag of the secret")?,
            sums_data: from.flag("flag of checksums")?,
        };
        if hello.session == 0 {
            return Err(from.wrong("expected a session above 0, found 0".into()));
        }
        from.end()?;
        Ok(hello)
    }
}

impl Welcome {
    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.text(&self.from);
        to.bytes(&self.incarnation.to_le_bytes());
        to.bytes(&self.session.to_le_bytes());
        to.bytes(&self.nonce);
        to.bytes(&self.max_message_bytes.to_le_bytes());
        to.proof(self.proof);
        to.0
    }

    /// Reads the message.
    ///
    /// # Errors
    ///
    /// If the bytes are no welcome.
    pub fn decode(bytes: &[u8]) -> Result<Welcome, FrameError> {
        let mut from = Reader::new(Kind::Welcome, bytes);
        let welcome = Welcome {
            from: from.name("sender's name")?,
            incarnation: from.incarnation()?,
            session: u64::from_le_bytes(from.array("session")?),
            nonce: from.array("nonce")?,
            max_message_bytes: u32::from_le_bytes(from.array("length of messages")?),
            proof: from.proof()?,
        };
        if welcome.session == 0 {
            return Err(from.wrong("expected a session above 0, found 0".into()));
        }
        from.end()?;
        Ok(welcome)
    }
}

impl Ready {
    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.proof(self.proof);
        to.bytes(&self.received.to_le_bytes());
        for (stream, received) in &self.streams {
            to.bytes(&stream.to_le_bytes());
            to.bytes(&received.to_le_bytes());
        }
        to.0
    }

    /// Reads the message.
    ///
    /// # Errors
    ///
    /// If the bytes are none, or streams are not in order.
    pub fn decode(bytes: &[u8]) -> Result<Ready, FrameError> {
        let mut from = Reader::new(Kind::Ready, bytes);
        let proof = from.proof()?;
        let received = u64::from_le_bytes(from.array("number that was received")?);
        let mut streams: Vec<(u64, u64)> = Vec::new();
        while !from.rest.is_empty() {
            let stream = u64::from_le_bytes(from.array("stream")?);
            let bytes = u64::from_le_bytes(from.array("bytes of a stream")?);
            if streams.len() == MAX_STREAMS {
                return Err(from.wrong(format!("expected at most {MAX_STREAMS} streams")));
            }
            if let Some((last, _)) = streams.last().filter(|(last, _)| *last >= stream) {
                let wrong = format!("expected a stream above {last}, found {stream}");
                return Err(from.wrong(wrong));
            }
            streams.push((stream, bytes));
        }
        Ok(Ready {
            proof,
            received,
            streams,
        })
    }
}

impl Open {
    /// The most bytes of a key.
    pub const MAX_KEY_BYTES: usize = 2 << 10;

    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.bytes(&self.total_bytes.to_le_bytes());
        to.text(&self.codec);
        to.bytes(&self.key);
        to.0
    }

    /// Reads the message.
    ///
    /// # Errors
    ///
    /// If the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Open, FrameError> {
        let mut from = Reader::new(Kind::Open, bytes);
        let total_bytes = u64::from_le_bytes(from.array("length of the value")?);
        let codec = from.text("codec")?;
        if from.rest.len() > Open::MAX_KEY_BYTES {
            let found = from.rest.len();
            let most = Open::MAX_KEY_BYTES;
            return Err(from.wrong(format!(
                "expected a key of at most {most} bytes, found {found}"
            )));
        }
        Ok(Open {
            key: from.rest.to_vec(),
            codec,
            total_bytes,
        })
    }
}

impl Failure {
    /// Returns the last word of a task that leaves.
    pub fn left() -> Failure {
        Failure {
            code: ErrorCode::Ok,
            message: "it has left".to_owned(),
        }
    }

    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.message.len().min(MAX_FAILURE_BYTES);
        while !self.message.is_char_boundary(end) {
            end -= 1;
        }
        let mut to = Writer::default();
        to.bytes(&[self.code as u8]);
        to.text(&self.message[..end]);
        to.0
    }

    /// Reads the message of a frame of this kind.
    ///
    /// # Errors
    ///
    /// If the bytes are none.
    pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Failure, FrameError> {
        let mut from = Reader::new(kind, bytes);
        let [number] = from.array("code")?;
        let code = code(number)
            .ok_or_else(|| from.wrong(format!("expected a code from 0 to 27, found {number}")))?;
        let message = from.text("message")?;
        if message.len() > MAX_FAILURE_BYTES {
            let found = message.len();
            return Err(from.wrong(format!(
                "expected a message of at most {MAX_FAILURE_BYTES} bytes, found {found}"
            )));
        }
        from.end()?;
        Ok(Failure { code, message })
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::new(failure.code, failure.message)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure {
            code: error.code(),
            message: error.message().to_owned(),
        }
    }
}

/// Returns the code of a number.
fn code(number: u8) -> Option<ErrorCode> {
    ErrorCode::ALL.get(usize::from(number)).copied()
}

/// Returns the bytes of a list of ids.
pub fn encode_ids(ids: &[u64]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

/// Reads a list of ids.
///
/// # Errors
///
/// If the bytes are no whole number of them, or too many.
pub fn decode_ids(bytes: &[u8]) -> Result<Vec<u64>, FrameError> {
    let mut from = Reader::new(Kind::Cancel, bytes);
    let mut ids = Vec::with_capacity(bytes.len().min(MAX_CANCELLED * 8) / 8);
    while !from.rest.is_empty() {
        if ids.len() == MAX_CANCELLED {
            return Err(from.wrong(format!("expected at most {MAX_CANCELLED} ids")));
        }
        ids.push(u64::from_le_bytes(from.array("id")?));
    }
    Ok(ids)
}

/// Returns why a text can't be the name of a task.
pub fn name_fault(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        let found = name.len();
        return Some(format!(
            "expected a name of 1 to {MAX_NAME_BYTES} bytes, found {found}"
        ));
    }
    let odd = name.chars().find(|c| c.is_control())?;
    Some(format!("expected a name of printable text, found {odd:?}"))
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        let len = u16::try_from(text.len()).expect("texts are checked before they are sent");
        self.bytes(&len.to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn proof(&mut self, proof: Option<[u8; 32]>) {
        self.bytes(&[u8::from(proof.is_some())]);
        self.bytes(proof.as_ref().map_or(&[], |proof| &proof[..]));
    }
}

struct Reader<'b> {
    kind: Kind,
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn new(kind: Kind, bytes: &'b [u8]) -> Reader<'b> {
        Reader { kind, rest: bytes }
    }

    fn wrong(&self, wrong: String) -> FrameError {
        let kind = self.kind;
        FrameError::Payload { kind, wrong }
    }

    fn take(&mut self, len: usize, what: &str) -> Result<&'b [u8], FrameError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            let found = self.rest.len();
            let wrong = format!("expected {len} bytes of the {what}, found {found}");
            return Err(self.wrong(wrong));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], FrameError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    fn text(&mut self, what: &str) -> Result<String, FrameError> {
        let len = u16::from_le_bytes(self.array(what)?);
        let bytes = self.take(usize::from(len), what)?;
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| self.wrong(format!("expected UTF-8 in the {what}")))?;
        Ok(text.to_owned())
    }

    fn name(&mut self, what: &str) -> Result<String, FrameError> {
        let name = self.text(what)?;
        match name_fault(&name) {
            Some(fault) => Err(self.wrong(format!("{what}: {fault}"))),
            None => Ok(name),
        }
    }

    fn incarnation(&mut self) -> Result<u128, FrameError> {
        let incarnation = u128::from_le_bytes(self.array("incarnation")?);
        if incarnation == 0 {
            return Err(self.wrong("expected an incarnation above 0, found 0".into()));
        }
        Ok(incarnation)
    }

    fn flag(&mut self, what: &str) -> Result<bool, FrameError> {
        match self.array(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [found] => Err(self.wrong(format!("expected 0 or 1 as {what}, found {found}"))),
        }
    }

    fn proof(&mut self) -> Result<Option<[u8; 32]>, FrameError> {
        match self.flag("flag of the proof")? {
            true => Ok(Some(self.array("proof")?)),
            false => Ok(None),
        }
    }

    fn end(&self) -> Result<(), FrameError> {
        match self.rest.len() {
            0 => Ok(()),
            found => Err(self.wrong(format!("expected the end, found {found} more bytes"))),
        }
    }
}
