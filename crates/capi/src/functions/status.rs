//! Functions of `tf_status.h`: results of calls, as code and message.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};

use tfrt_host::{Error, ErrorCode};

use crate::fault;
use crate::guard::Callback;
use crate::handle::{Handle, Words};
use crate::raw::{HostText, Memory, Text};

/// A result of a call: `TF_Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The code; 0 is success.
    pub code: i32,
    /// Message and payloads of an error; none for success.
    details: Option<Box<Details>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Details {
    message: CString,
    payloads: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The function of the host that has told the error, and the argument that was wrong, if one has.
    place: Option<String>,
}

/// Code of an unknown mistake.
const UNKNOWN: i32 = 2;
/// The highest code.
const LAST: i32 = 16;

impl Status {
    /// Makes a status. A code that there is not becomes that of unknown mistakes.
    pub fn new(code: i32, message: &[u8]) -> Status {
        let code = match (0..=LAST).contains(&code) {
            true => code,
            false => UNKNOWN,
        };
        let made = || {
            let message = CString::new(message).unwrap_or_else(|error| {
                let at = error.nul_position();
                CString::new(&message[..at]).unwrap_or_default()
            });
            Box::new(Details {
                message,
                payloads: BTreeMap::new(),
                place: None,
            })
        };
        Status {
            code,
            details: (code != 0).then(made),
        }
    }

    /// Makes a status of an error.
    pub fn of(error: &Error) -> Status {
        Status::new(code_of(error.code()), error.message().as_bytes())
    }

    /// Makes a status of an error that the function that is running tells: of an argument, if that is said, or else of what the
    /// notes of the error say.
    #[cold]
    pub fn told(error: &Error, argument: Option<&str>) -> Status {
        let mut status = Status::of(error);
        if let Some(details) = &mut status.details {
            let function = fault::function().to_owned();
            let notes = error.notes().iter();
            details.place = Some(match argument {
                Some(argument) => format!("{function}: argument '{argument}'"),
                None => notes.fold(function, |place, note| format!("{place}: {note}")),
            });
        }
        status
    }

    /// Returns which function of the host has told the error, for which argument, if one has.
    pub fn place(&self) -> Option<&str> {
        self.details.as_ref()?.place.as_deref()
    }

    /// Returns what is read of the status without taking its place: the code.
    #[inline]
    pub fn facts(&self) -> Words {
        let mut words = Words::default();
        words[0] = u64::from(self.code.cast_unsigned());
        words
    }

    /// Returns the message.
    pub fn message(&self) -> String {
        let details = self.details.as_ref();
        details.map_or_else(String::new, |details| {
            details.message.to_string_lossy().into_owned()
        })
    }

    /// Returns the error that this says; `None` for success.
    pub fn error(&self) -> Option<Error> {
        if self.code == 0 {
            return None;
        }
        let code = CODES.iter().find(|(_, code)| *code == self.code);
        let code = code.map_or(ErrorCode::Unknown, |(code, _)| *code);
        let mut error = Error::new(code, self.message());
        for (key, value) in self.details.iter().flat_map(|details| &details.payloads) {
            let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            error = error.with_note(format!("{key}: {value}"));
        }
        Some(error)
    }
}

const CODES: &[(ErrorCode, i32)] = &[
    (ErrorCode::Cancelled, 1),
    (ErrorCode::Unknown, 2),
    (ErrorCode::InvalidArgument, 3),
    (ErrorCode::DeadlineExceeded, 4),
    (ErrorCode::NotFound, 5),
    (ErrorCode::AlreadyExists, 6),
    (ErrorCode::PermissionDenied, 7),
    (ErrorCode::ResourceExhausted, 8),
    (ErrorCode::FailedPrecondition, 9),
    (ErrorCode::Aborted, 10),
    (ErrorCode::OutOfRange, 11),
    (ErrorCode::Unimplemented, 12),
    (ErrorCode::Internal, 13),
    (ErrorCode::Unavailable, 14),
    (ErrorCode::DataLoss, 15),
    (ErrorCode::Unauthenticated, 16),
];

/// Returns the names of the codes of failures, as the C API has them, with their numbers: `NOT_FOUND`, 5.
pub(crate) fn names() -> impl Iterator<Item = (String, i32)> {
    CODES.iter().map(|(code, number)| {
        let mut name = String::new();
        for letter in code.name().chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_uppercase());
        }
        (name, *number)
    })
}

fn code_of(code: ErrorCode) -> i32 {
    let found = CODES.iter().find(|(own, _)| *own == code);
    found.map_or(UNKNOWN, |(_, code)| *code)
}

/// Writes the outcome of a function into the caller's status: success always, so that nothing of before is left. A null
/// status is allowed.
pub(crate) fn set(status: Handle<Status>, outcome: &Result<(), Error>) {
    match outcome {
        Ok(()) => succeed(status),
        Err(error) if !status.is_null() => {
            let made = Status::told(error, None);
            status.with("status", |own| *own = made);
        }
        Err(_) => (),
    }
}

/// Writes success into the caller's status, unless it says so or is null.
#[inline(always)]
pub(crate) fn succeed(status: Handle<Status>) {
    if known_code(status) != Some(0) {
        overwrite(status);
    }
}

#[cold]
#[inline(never)]
fn overwrite(status: Handle<Status>) {
    if !status.is_null() {
        status.with("status", |own| *own = Status::default());
    }
}

/// Writes the outcome of a function into the caller's status, and returns its value.
pub(crate) fn finish<T: Default>(status: Handle<Status>, outcome: Result<T, Error>) -> T {
    match outcome {
        Ok(value) => {
            set(status, &Ok(()));
            value
        }
        Err(error) => {
            set(status, &Err(error));
            T::default()
        }
    }
}

pub(crate) fn new() -> Handle<Status> {
    Handle::new(Status::default())
}

pub(crate) fn delete(status: Handle<Status>) {
    status.delete("status");
}

pub(crate) fn set_status(status: Handle<Status>, code: c_int, message: Text) {
    let message = message.bytes_or_null().unwrap_or_default();
    let made = Status::new(code, message);
    status.with("status", |own| *own = made);
}

pub(crate) fn set_payload(status: Handle<Status>, key: Text, value: Text) {
    let (Some(key), Some(value)) = (key.bytes("key"), value.bytes("value")) else {
        return;
    };
    status.with("status", |own| {
        if let Some(details) = &mut own.details {
            details.payloads.insert(key.to_vec(), value.to_vec());
        }
    });
}

pub(crate) fn for_each_payload(status: Handle<Status>, visitor: Callback, capture: Memory) {
    let details = status.with("status", |own| own.details.clone());
    for (key, value) in details.flatten().unwrap_or_default().payloads {
        let (Ok(key), Ok(value)) = (CString::new(key), CString::new(value)) else {
            continue;
        };
        let arguments = [
            key.as_ptr() as usize,
            value.as_ptr() as usize,
            capture.address(),
        ];
        if let Err(exception) = visitor.call(&arguments) {
            fault::record(format_args!("the visitor {exception}"));
            return;
        }
    }
}

pub(crate) fn set_from_io_error(status: Handle<Status>, number: c_int, context: Text) {
    let code = code_of_errno(number);
    let context = context.bytes_or_null().unwrap_or_default();
    let context = String::from_utf8_lossy(context);
    let text = text_of_errno(number);
    let made = Status::new(code, format!("{context}; {text}").as_bytes());
    status.with("status", |own| *own = made);
}

fn text_of_errno(number: c_int) -> String {
    let text = std::io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next();
    text.unwrap_or_default().to_owned()
}

/// Returns the error for a mistake of the system with something of this name.
pub(crate) fn of_io_error(name: &str, error: &std::io::Error) -> Error {
    let Some(number) = error.raw_os_error() else {
        return Error::new(ErrorCode::Unknown, format!("{name}; {error}"));
    };
    let code = code_of_errno(number);
    let found = CODES.iter().find(|(_, own)| *own == code);
    let code = found.map_or(ErrorCode::Unknown, |(code, _)| *code);
    Error::new(code, format!("{name}; {}", text_of_errno(number)))
}

#[inline(always)]
pub(crate) fn known_code(status: Handle<Status>) -> Option<c_int> {
    let found = status.look(|facts| facts.word::<0>() as u32)?;
    Some(found.cast_signed())
}

#[cold]
pub(crate) fn code(status: Handle<Status>) -> c_int {
    status.with("status", |own| own.code).unwrap_or(UNKNOWN)
}

pub(crate) fn message(status: Handle<Status>) -> HostText {
    let message = status.with("status", |own| {
        let details = own.details.as_ref();
        details.map(|details| HostText::of(&details.message))
    });
    message.flatten().unwrap_or_default()
}

/// Returns the code for a number of the C library's `errno`.
fn code_of_errno(number: c_int) -> i32 {
    use libc as c;
    match number {
        0 => 0,
        c::ECANCELED => 1,
        c::E2BIG
        | c::EFAULT
        | c::EINVAL
        | c::ENOTTY
        | c::ESPIPE
        | c::EDOM
        | c::ENAMETOOLONG
        | c::ENOSTR
        | c::EILSEQ
        | c::ENOTSOCK
        | c::EDESTADDRREQ
        | c::EPROTOTYPE
        | c::ENOPROTOOPT => 3,
        c::ETIME | c::ETIMEDOUT => 4,
        c::ENOENT | c::ESRCH | c::ENXIO | c::ENODEV => 5,
        c::EEXIST | c::EADDRNOTAVAIL | c::EALREADY => 6,
        c::EPERM | c::EACCES | c::EROFS => 7,
        c::ENOMEM
        | c::ENFILE
        | c::EMFILE
        | c::ENOSPC
        | c::EMLINK
        | c::ENODATA
        | c::ENOSR
        | c::EUSERS
        | c::ENOBUFS
        | c::EDQUOT => 8,
        c::EBADF
        | c::ECHILD
        | c::ENOTBLK
        | c::EBUSY
        | c::ENOTDIR
        | c::EISDIR
        | c::ETXTBSY
        | c::EPIPE
        | c::ENOTEMPTY
        | c::EADDRINUSE
        | c::EISCONN
        | c::ENOTCONN
        | c::ESHUTDOWN => 9,
        c::EDEADLK | c::ESTALE => 10,
        c::EFBIG | c::ERANGE | c::EOVERFLOW => 11,
        c::EXDEV
        | c::ENOSYS
        | c::EPROTONOSUPPORT
        | c::ESOCKTNOSUPPORT
        | c::EOPNOTSUPP
        | c::EPFNOSUPPORT
        | c::EAFNOSUPPORT => 12,
        c::EINTR
        | c::EAGAIN
        | c::ENOLCK
        | c::ENONET
        | c::ENOLINK
        | c::ENETDOWN
        | c::ENETUNREACH
        | c::ENETRESET
        | c::ECONNABORTED
        | c::ECONNRESET
        | c::ECONNREFUSED
        | c::EHOSTDOWN
        | c::EHOSTUNREACH => 14,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_codes_and_messages_are_kept_as_far_as_they_go() {
        let odd = Status::new(99, b"boom");
        assert_eq!((odd.code, odd.message()), (2, "boom".to_owned()));
        assert_eq!(Status::new(0, b"dropped"), Status::default());
        assert_eq!(Status::new(3, b"cut\0here").message(), "cut");
        let error = Status::new(5, b"gone").error().unwrap();
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::NotFound, "gone")
        );
        assert_eq!(Status::of(&error).code, 5);
    }
}
