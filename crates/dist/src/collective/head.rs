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

use tfrt_async::Error;
use tfrt_tensor::DType;

use super::{Announcement, Function, Key, Message, Operation, Order, Piece};
use crate::bytes::{Reader, Writer};

const VERSION: u8 = 1;
/// The most bytes of a head.
pub const MAX_HEAD_BYTES: usize = 1 << 20;

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
    let mut reader = Reader::new("the head of a collective's message", head);
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
    reader.end()?;
    Ok((key, message))
}

impl Writer {
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

impl Reader<'_> {
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
