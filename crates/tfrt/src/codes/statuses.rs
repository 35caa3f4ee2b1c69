//! The meaning of the statuses of errors at run time, which programs see where diagnostics have
//! codes.

use tfrt_host::ErrorCode;

/// Statuses with what each says of the call or of the kernel that failed.
const ALL: [(ErrorCode, &str); 27] = [
    (ErrorCode::Cancelled, "the call was cancelled"),
    (
        ErrorCode::Unknown,
        "the kernel says no more than its message does",
    ),
    (
        ErrorCode::InvalidArgument,
        "a kernel was given a value that it takes under no circumstances",
    ),
    (
        ErrorCode::DeadlineExceeded,
        "the deadline passed before the call was done",
    ),
    (ErrorCode::NotFound, "what was asked for does not exist"),
    (
        ErrorCode::AlreadyExists,
        "what was to be made exists already",
    ),
    (
        ErrorCode::PermissionDenied,
        "the caller may not do what it asks for",
    ),
    (
        ErrorCode::ResourceExhausted,
        "a limit was exceeded, such as that on depth, steps or memory",
    ),
    (
        ErrorCode::FailedPrecondition,
        "things are not in the state that the kernel needs",
    ),
    (
        ErrorCode::Aborted,
        "it was given up, most often since others were at the same thing",
    ),
    (
        ErrorCode::OutOfRange,
        "a number or an index lies outside of what is valid",
    ),
    (
        ErrorCode::Unimplemented,
        "what was asked for is not there, or not supported",
    ),
    (
        ErrorCode::Internal,
        "something that must hold does not: a fault of a kernel, or of the runtime",
    ),
    (
        ErrorCode::Unavailable,
        "what is needed can't be reached now; another try may succeed",
    ),
    (ErrorCode::DataLoss, "data is lost or damaged"),
    (
        ErrorCode::Unauthenticated,
        "the caller has not shown who it is",
    ),
    (ErrorCode::RpcCancelled, "a remote call was cancelled"),
    (
        ErrorCode::RpcDeadlineExceeded,
        "the deadline of a remote call passed",
    ),
    (
        ErrorCode::RpcUnavailable,
        "the other side of a remote call can't be reached",
    ),
    (
        ErrorCode::RpcUnknown,
        "a remote call failed for a reason that is not known",
    ),
    (ErrorCode::DeviceNotFound, "there is no such device"),
    (ErrorCode::TaskNotFound, "there is no such remote task"),
    (
        ErrorCode::RemoteFunctionAlreadyExists,
        "a remote function of the name exists already",
    ),
    (
        ErrorCode::MalformattedMlirFile,
        "a program that was sent is no MLIR",
    ),
    (
        ErrorCode::CompilationFailed,
        "a program that was sent does not compile",
    ),
    (
        ErrorCode::InvalidDistributedContextId,
        "there is no distributed context of the id",
    ),
    (
        ErrorCode::DistributedContextAlreadyExists,
        "a distributed context of the id exists already",
    ),
];

/// Returns a status by its name, in whatever case, and what it means.
///
/// # Examples
///
/// ```
/// use tfrt::{ErrorCode, codes};
///
/// let (status, meaning) = codes::status("outofrange").unwrap();
/// assert_eq!(status, ErrorCode::OutOfRange);
/// assert_eq!(meaning, "a number or an index lies outside of what is valid");
/// ```
pub fn status(name: &str) -> Option<(ErrorCode, &'static str)> {
    let mut all = ALL.iter();
    all.find(|(status, _)| status.name().eq_ignore_ascii_case(name))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_an_error_is_listed_in_order() {
        for (position, (status, _)) in ALL.iter().enumerate() {
            assert_eq!(*status as usize, position + 1, "{status:?}");
        }
        let last = ErrorCode::DistributedContextAlreadyExists;
        assert_eq!(last as usize, ALL.len());
    }
}
