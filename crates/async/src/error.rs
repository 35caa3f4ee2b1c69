//! [`Error`]: the content of a failed value: a code, a message, and where it happened.
//!
//! An [`Error`] is one counted pointer, so a failure travels through a million values without
//! copying its text. The text itself never changes behind a reader's back: the `with_` methods
//! edit in place only when nobody else holds the error, and copy otherwise.

use std::fmt;

use crate::sync::Arc;

/// The kinds of failure, in the order (and with the numbers) of the original runtime.
///
/// The first seventeen are the canonical gRPC set; the rest belong to the distributed runtime.
///
/// ```
/// use tfrt_async::ErrorCode;
/// assert_eq!(ErrorCode::InvalidArgument.name(), "InvalidArgument");
/// assert_eq!(ErrorCode::InvalidArgument as u8, 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the names are the canonical ones and say all there is"
)]
pub enum ErrorCode {
    Ok,
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
    RpcCancelled,
    RpcDeadlineExceeded,
    RpcUnavailable,
    RpcUnknown,
    DeviceNotFound,
    TaskNotFound,
    RemoteFunctionAlreadyExists,
    MalformattedMlirFile,
    CompilationFailed,
    InvalidDistributedContextId,
    DistributedContextAlreadyExists,
}

impl ErrorCode {
    /// All codes, in the order of their numbers: the code of number `n` is `ALL[n]`.
    pub const ALL: [ErrorCode; 28] = [
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

    /// Returns the name of the code as it is written in this enumeration.
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::Ok => "OK",
            ErrorCode::Cancelled => "Cancelled",
            ErrorCode::Unknown => "Unknown",
            ErrorCode::InvalidArgument => "InvalidArgument",
            ErrorCode::DeadlineExceeded => "DeadlineExceeded",
            ErrorCode::NotFound => "NotFound",
            ErrorCode::AlreadyExists => "AlreadyExists",
            ErrorCode::PermissionDenied => "PermissionDenied",
            ErrorCode::ResourceExhausted => "ResourceExhausted",
            ErrorCode::FailedPrecondition => "FailedPrecondition",
            ErrorCode::Aborted => "Aborted",
            ErrorCode::OutOfRange => "OutOfRange",
            ErrorCode::Unimplemented => "Unimplemented",
            ErrorCode::Internal => "Internal",
            ErrorCode::Unavailable => "Unavailable",
            ErrorCode::DataLoss => "DataLoss",
            ErrorCode::Unauthenticated => "Unauthenticated",
            ErrorCode::RpcCancelled => "RpcCancelled",
            ErrorCode::RpcDeadlineExceeded => "RpcDeadlineExceeded",
            ErrorCode::RpcUnavailable => "RpcUnavailable",
            ErrorCode::RpcUnknown => "RpcUnknown",
            ErrorCode::DeviceNotFound => "DeviceNotFound",
            ErrorCode::TaskNotFound => "TaskNotFound",
            ErrorCode::RemoteFunctionAlreadyExists => "RemoteFunctionAlreadyExists",
            ErrorCode::MalformattedMlirFile => "MalformattedMlirFile",
            ErrorCode::CompilationFailed => "CompilationFailed",
            ErrorCode::InvalidDistributedContextId => "InvalidDistributedContextId",
            ErrorCode::DistributedContextAlreadyExists => "DistributedContextAlreadyExists",
        }
    }
}

// A code that is missing above, or is out of order, does not compile.
const _: () = {
    let mut number = 0;
    while number < ErrorCode::ALL.len() {
        assert!(ErrorCode::ALL[number] as usize == number);
        number += 1;
    }
    assert!(ErrorCode::DistributedContextAlreadyExists as usize + 1 == ErrorCode::ALL.len());
};

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A location in the user's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SourceLocation {
    /// A position in a file, counted from one.
    FileLineCol {
        /// The file's name as the program was given it.
        file: String,
        /// The line.
        line: u32,
        /// The column.
        column: u32,
    },
    /// A location that has only a description.
    Opaque(String),
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::FileLineCol { file, line, column } => {
                write!(f, "{file}:{line}:{column}")
            }
            SourceLocation::Opaque(text) => f.write_str(text),
        }
    }
}

/// A process of a cluster: task `task` of the job `job`, such as `/job:worker/task:1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterTask {
    /// The name of the job.
    pub job: String,
    /// The number of the task in the job.
    pub task: u32,
}

impl fmt::Display for ClusterTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/job:{}/task:{}", self.job, self.task)
    }
}

/// A failure that travels as a value: cheap to clone, never copied.
///
/// # Examples
///
/// ```
/// use tfrt_async::{Error, ErrorCode};
/// let error = Error::invalid_argument("Divide by zero").with_kernel("tfrt.div.i32");
/// let copy = error.clone();
/// assert!(copy.same(&error));
/// assert_eq!(copy.code(), ErrorCode::InvalidArgument);
/// assert_eq!(copy.to_string(), "Divide by zero");
/// assert_eq!(copy.kernel(), Some("tfrt.div.i32"));
/// ```
#[derive(Clone)]
pub struct Error(Arc<Details>);

#[derive(Clone)]
struct Details {
    code: ErrorCode,
    message: String,
    location: Option<SourceLocation>,
    kernel: Option<String>,
    task: Option<Box<ClusterTask>>,
    notes: Vec<String>,
}

/// Defines one constructor per code: `unknown => Unknown` becomes
/// `pub fn unknown(message: impl Into<String>) -> Error { Error::new(ErrorCode::Unknown, message) }`.
macro_rules! constructors {
    ($($name:ident => $code:ident,)*) => {
        $(
            #[doc = concat!("Returns an error with code [`ErrorCode::", stringify!($code), "`].")]
            pub fn $name(message: impl Into<String>) -> Error {
                Error::new(ErrorCode::$code, message)
            }
        )*
    };
}

impl Error {
    /// Returns an error without a location, a kernel or notes.
    ///
    /// An error is never `Ok`: that code becomes [`ErrorCode::Unknown`].
    #[cold]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        let code = if code == ErrorCode::Ok {
            ErrorCode::Unknown
        } else {
            code
        };
        Error(Arc::new(Details {
            code,
            message: message.into(),
            location: None,
            kernel: None,
            task: None,
            notes: Vec::new(),
        }))
    }

    constructors! {
        cancelled => Cancelled,
        unknown => Unknown,
        invalid_argument => InvalidArgument,
        deadline_exceeded => DeadlineExceeded,
        not_found => NotFound,
        already_exists => AlreadyExists,
        permission_denied => PermissionDenied,
        resource_exhausted => ResourceExhausted,
        failed_precondition => FailedPrecondition,
        aborted => Aborted,
        out_of_range => OutOfRange,
        unimplemented => Unimplemented,
        internal => Internal,
        unavailable => Unavailable,
        data_loss => DataLoss,
        unauthenticated => Unauthenticated,
    }

    /// Returns the kind of failure.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the text, which is also what `Display` prints, behind the task if there is one.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns where in the user's source the failure arose, if anybody said so.
    pub fn location(&self) -> Option<&SourceLocation> {
        self.0.location.as_ref()
    }

    /// Returns the name of the kernel that failed, if anybody said so.
    pub fn kernel(&self) -> Option<&str> {
        self.0.kernel.as_deref()
    }

    /// Returns the task of a cluster that the failure comes from, if it comes from another process.
    pub fn task(&self) -> Option<&ClusterTask> {
        self.0.task.as_deref()
    }

    /// Returns the notes added so far, oldest first.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// Returns the error with a location, unless it has one already.
    pub fn with_location(self, location: SourceLocation) -> Error {
        if self.0.location.is_some() {
            return self;
        }
        self.edit(|details| details.location = Some(location))
    }

    /// Returns the error with a kernel's name, unless it has one already.
    pub fn with_kernel(self, kernel: impl Into<String>) -> Error {
        if self.0.kernel.is_some() {
            return self;
        }
        self.edit(|details| details.kernel = Some(kernel.into()))
    }

    /// Returns the error with the task of a cluster that it comes from, unless it has one already.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_async::{ClusterTask, Error};
    ///
    /// let task = ClusterTask { job: "worker".to_owned(), task: 1 };
    /// let error = Error::unknown("out of reach").with_task(task);
    /// assert_eq!(error.to_string(), "/job:worker/task:1: out of reach");
    /// assert_eq!(error.clone().task().unwrap().task, 1);
    /// ```
    pub fn with_task(self, task: ClusterTask) -> Error {
        if self.0.task.is_some() {
            return self;
        }
        self.edit(|details| details.task = Some(Box::new(task)))
    }

    /// Returns the error with one more note.
    pub fn with_note(self, note: impl Into<String>) -> Error {
        self.edit(|details| details.notes.push(note.into()))
    }

    /// Returns true if both are the same failure, not merely equal ones.
    pub fn same(&self, other: &Error) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Applies `change` in place if nobody else holds the error, else to a copy.
    fn edit(mut self, change: impl FnOnce(&mut Details)) -> Error {
        if let Some(details) = Arc::get_mut(&mut self.0) {
            change(details);
            return self;
        }
        let mut details = Details::clone(&self.0);
        change(&mut details);
        Error(Arc::new(details))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(task) = &self.0.task {
            write!(f, "{task}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details {
            code,
            message,
            location,
            kernel,
            task,
            notes,
        } = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("code", code).field("message", message);
        if let Some(location) = location {
            out.field("location", &format_args!("{location}"));
        }
        if let Some(kernel) = kernel {
            out.field("kernel", kernel);
        }
        if let Some(task) = task {
            out.field("task", &format_args!("{task}"));
        }
        if !notes.is_empty() {
            out.field("notes", notes);
        }
        out.finish()
    }
}

impl std::error::Error for Error {}

#[cfg(all(test, not(loom)))]
mod tests;
