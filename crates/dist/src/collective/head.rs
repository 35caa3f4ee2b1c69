//! Heads: the bytes of a message but for its elements, which a transport sends behind them.
//!
//! Numbers are little-endian, texts stand behind their length. There is one way to write a message: what is read gives the
//! same bytes again.
//!
//! | Part | Bytes |
//! | --- | --- |
//! | version, kind | u8, u8 |
//! | key: group, instance | text, text |
//! | announce (0) | announcement |
//! | piece (1) | part or result u8, number u32, whether there is an announcement u8, announcement |
//! | confirm (2), completed (5) | nothing |
//! | ask (3) | number of lost u32, tasks, error |
//! | failed (4) | error |
//! | announcement | members u32, digest u64, operation u8 and its numbers, type u8, rank u32, extents u64 |
//! | task | job text, number u32 |
//! | error | code u8, message text, whether there is a task u8, task |

use tfrt_async::{ClusterTask, Error, ErrorCode};
use tfrt_tensor::DType;

use super::{Announcement, Function, Key, Message, Operation, Order, Piece};

const VERSION: u8 = 1;
/// The most bytes of a head.
pub const MAX_HEAD_BYTES: usize = 1 << 20;
/// The most bytes of the message of an error; what is longer is cut.
const MAX_MESSAGE_BYTES: usize = 4096;

/// The codes of errors, in the order of their numbers.
const CODES: [ErrorCode; 28] = [
    ErrorCode::Ok,
    ErrorCode::Cancelled,
    ErrorCode::Unknown,
    ErrorCode::InvalidArgument,
    ErrorCode::DeadlineExceeded,
    ErrorCode::NotFound,
    ErrorCode::AlreadyExists,
    ErrorCode::PermissionDenied,
    ErrorCode::ResourceExhausted,
    ErrorCode::FailedPrecondition,
    ErrorCode::Aborted,
    ErrorCode::OutOfRange,
    ErrorCode::Unimplemented,
    ErrorCode::Internal,
    ErrorCode::Unavailable,
    ErrorCode::DataLoss,
    ErrorCode::Unauthenticated,
    ErrorCode::RpcCancelled,
    ErrorCode::RpcDeadlineExceeded,
    ErrorCode::RpcUnavailable,
    ErrorCode::RpcUnknown,
    ErrorCode::DeviceNotFound,
    ErrorCode::TaskNotFound,
    ErrorCode::RemoteFunctionAlreadyExists,
    ErrorCode::MalformattedMlirFile,
    ErrorCode::CompilationFailed,
    ErrorCode::InvalidDistributedContextId,
    ErrorCode::DistributedContextAlreadyExists,
];
const FUNCTIONS: [Function; 4] = [Function::Sum, Function::Min, Function::Max, Function::Mean];
const ORDERS: [Order; 2] = [Order::Tree, Order::Ring];

/// Returns the head of a message.
pub fn write<D>(key: &Key, message: &Message<D>) -> Vec<u8> {
    let mut head = Writer(vec![VERSION]);
    head.u8(match message {
        Message::Announce(_) => 0,
        Message::Piece { .. } => 1,
        Message::Confirm => 2,
        Message::Ask { .. } => 3,
        Message::Failed(_) => 4,
        Message::Completed => 5,
    });
    head.text(&key.group);
    head.text(&key.instance);
    match message {
        Message::Announce(announcement) => head.announcement(announcement),
        Message::Piece {
            announcement,
            piece,
            ..
        } => {
            let (kind, number) = match piece {
                Piece::Part(number) => (0, number),
                Piece::Result(number) => (1, number),
            };
            head.u8(kind);
            head.u32(*number);
            head.u8(announcement.is_some().into());
            if let Some(announcement) = announcement {
                head.announcement(announcement);
            }
        }
        Message::Confirm | Message::Completed => (),
        Message::Ask { lost, error } => {
            head.len(lost.len());
            lost.iter().for_each(|task| head.task(task));
            head.error(error);
        }
        Message::Failed(error) => head.error(error),
    }
    head.0
}

/// Reads a head; `elements` gives what has come behind it, and is asked if the message has elements.
///
/// # Errors
///
/// `InvalidArgument` if the bytes are no head, with the first place that is wrong.
pub fn read<D>(head: &[u8], elements: impl FnOnce() -> D) -> Result<(Key, Message<D>), Error> {
    if head.len() > MAX_HEAD_BYTES {
        let len = head.len();
        return Err(Error::invalid_argument(format!(
            "the head of a collective's message: expected at most {MAX_HEAD_BYTES} bytes, found {len}"
        )));
    }
    let mut reader = Reader { bytes: head, at: 0 };
    let version = reader.u8()?;
    if version != VERSION {
        return Err(reader.wrong(&format!("version {VERSION}, found {version}")));
    }
    let kind = reader.u8()?;
    let key = Key {
        group: reader.text()?.to_owned(),
        instance: reader.text()?.to_owned(),
    };
    let message = match kind {
        0 => Message::Announce(reader.announcement()?),
        1 => {
            let kind = reader.u8()?;
            let number = reader.u32()?;
            let piece = match kind {
                0 => Piece::Part(number),
                1 => Piece::Result(number),
                other => return Err(reader.wrong(&format!("a part or a result, found {other}"))),
            };
            let announcement = match reader.flag()? {
                true => Some(reader.announcement()?),
                false => None,
            };
            Message::Piece {
                announcement,
                piece,
                data: elements(),
            }
        }
        2 => Message::Confirm,
        3 => {
            // A task has a text and a number, of four bytes each or more.
            let n_lost = reader.count(8)?;
            let lost = (0..n_lost)
                .map(|_| reader.task())
                .collect::<Result<_, _>>()?;
            let error = reader.error()?;
            Message::Ask { lost, error }
        }
        4 => Message::Failed(reader.error()?),
        5 => Message::Completed,
        other => return Err(reader.wrong(&format!("a kind of message below 6, found {other}"))),
    };
    match reader.at == head.len() {
        true => Ok((key, message)),
        false => Err(reader.wrong("the end")),
    }
}

/// A head that is written.
struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn len(&mut self, len: usize) {
        self.u32(u32::try_from(len).unwrap_or(u32::MAX));
    }

    fn text(&mut self, text: &str) {
        self.len(text.len());
        self.0.extend(text.as_bytes());
    }

    fn task(&mut self, task: &ClusterTask) {
        self.text(&task.job);
        self.u32(task.task);
    }

    fn error(&mut self, error: &Error) {
        self.u8(error.code() as u8);
        let message = error.message();
        let mut len = message.len().min(MAX_MESSAGE_BYTES);
        while !message.is_char_boundary(len) {
            len -= 1;
        }
        self.text(&message[..len]);
        self.u8(error.task().is_some().into());
        if let Some(task) = error.task() {
            self.task(task);
        }
    }

    fn announcement(&mut self, announcement: &Announcement) {
        self.u32(announcement.n_members);
        self.u64(announcement.members);
        match &announcement.operation {
            Operation::AllReduce {
                function,
                leaves,
                order,
            } => {
                self.u8(0);
                self.u8(number_of(&FUNCTIONS, function));
                self.u64(*leaves as u64);
                self.u8(number_of(&ORDERS, order));
            }
            Operation::Broadcast { sender } => {
                self.u8(1);
                self.u64(*sender as u64);
            }
            Operation::AllGather { axis, any_shape } => {
                self.u8(2);
                self.u64(*axis as u64);
                self.u8((*any_shape).into());
            }
        }
        self.u8(announcement.dtype.byte());
        self.len(announcement.extents.len());
        for extent in &announcement.extents {
            self.u64(*extent as u64);
        }
    }
}

/// Returns the number of an entry of a table.
fn number_of<T: PartialEq>(table: &[T], entry: &T) -> u8 {
    let number = table.iter().position(|other| other == entry);
    let number = number.and_then(|number| u8::try_from(number).ok());
    number.expect("the table has all entries")
}

/// A head that is read.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    #[cold]
    fn wrong(&self, expected: &str) -> Error {
        let at = self.at;
        Error::invalid_argument(format!(
            "the head of a collective's message, byte {at}: expected {expected}"
        ))
    }

    fn take(&mut self, len: usize) -> Result<&'b [u8], Error> {
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| {
            let n_left = self.bytes.len() - self.at;
            self.wrong(&format!("{len} bytes, found {n_left}"))
        })?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("as many bytes were taken"))
    }

    fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    fn usize(&mut self) -> Result<usize, Error> {
        let number = self.u64()?;
        usize::try_from(number)
            .map_err(|_| self.wrong(&format!("a size of this machine, found {number}")))
    }

    /// Reads a number of things that have so many bytes each or more.
    fn count(&mut self, min_bytes_each: usize) -> Result<usize, Error> {
        let count = self.u32()? as usize;
        let n_left = self.bytes.len() - self.at;
        match count <= n_left / min_bytes_each {
            true => Ok(count),
            false => Err(self.wrong(&format!("at most {n_left} bytes of things, found {count}"))),
        }
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong(&format!("0 or 1, found {other}"))),
        }
    }

    fn entry<T: Copy>(&mut self, table: &[T]) -> Result<T, Error> {
        let number = self.u8()?;
        let entry = table.get(usize::from(number)).copied();
        let len = table.len();
        entry.ok_or_else(|| self.wrong(&format!("a number below {len}, found {number}")))
    }

    fn text(&mut self) -> Result<&'b str, Error> {
        let len = self.count(1)?;
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong("a text in UTF-8 before"))
    }

    fn task(&mut self) -> Result<ClusterTask, Error> {
        let job = self.text()?.to_owned();
        let task = self.u32()?;
        Ok(ClusterTask { job, task })
    }

    fn error(&mut self) -> Result<Error, Error> {
        let code = self.entry(&CODES)?;
        if code == ErrorCode::Ok {
            return Err(self.wrong("the code of an error before"));
        }
        let message = self.text()?;
        if message.len() > MAX_MESSAGE_BYTES {
            let len = message.len();
            return Err(self.wrong(&format!(
                "a message of at most {MAX_MESSAGE_BYTES} bytes before, found {len}"
            )));
        }
        let error = Error::new(code, message);
        match self.flag()? {
            true => Ok(error.with_task(self.task()?)),
            false => Ok(error),
        }
    }

    fn announcement(&mut self) -> Result<Announcement, Error> {
        let (n_members, members) = (self.u32()?, self.u64()?);
        let operation = match self.u8()? {
            0 => Operation::AllReduce {
                function: self.entry(&FUNCTIONS)?,
                leaves: self.usize()?,
                order: self.entry(&ORDERS)?,
            },
            1 => Operation::Broadcast {
                sender: self.usize()?,
            },
            2 => Operation::AllGather {
                axis: self.usize()?,
                any_shape: self.flag()?,
            },
            other => return Err(self.wrong(&format!("an operation below 3, found {other}"))),
        };
        let byte = self.u8()?;
        let dtype = DType::from_byte(byte);
        let dtype = dtype.ok_or_else(|| self.wrong(&format!("a type before, found {byte}")))?;
        let rank = self.count(8)?;
        let extents = (0..rank).map(|_| self.usize()).collect::<Result<_, _>>()?;
        Ok(Announcement {
            n_members,
            members,
            operation,
            dtype,
            extents,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_errors_have_their_numbers() {
        for (number, code) in CODES.into_iter().enumerate() {
            assert_eq!(usize::from(code as u8), number, "{code}");
        }
    }
}
