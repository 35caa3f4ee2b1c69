//! [`Refusal`]: the reason why a request gets no answer but an error, with its status in HTTP.

use hyper::StatusCode;
use tfrt_host::{Error, ErrorCode};

/// An error of a request. The status in HTTP and that in gRPC follow from its code, unless HTTP has a better one.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub error: Error,
    /// The status in HTTP, where the code of the error says less.
    status: Option<StatusCode>,
}

impl Refusal {
    /// Makes a refusal with a status of HTTP that no code has.
    pub fn with_status(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal {
            error: Error::new(code, message),
            status: Some(status),
        }
    }

    /// Makes a refusal of something that the client has sent.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Error::invalid_argument(message).into()
    }

    /// Makes a refusal of a name that nothing has.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Error::new(ErrorCode::NotFound, message).into()
    }

    /// Makes a refusal of what this server does not do.
    pub fn unimplemented(message: impl Into<String>) -> Refusal {
        Error::new(ErrorCode::Unimplemented, message).into()
    }

    /// Returns the status in HTTP.
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| status_of(self.error.code()))
    }

    /// Returns the message, with the notes of the error behind it.
    pub fn message(&self) -> String {
        match self.error.notes() {
            [] => self.error.message().to_owned(),
            notes => format!("{} ({})", self.error.message(), notes.join("; ")),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal {
            error,
            status: None,
        }
    }
}

/// Returns the message of an error of the system, without the number that Rust puts behind it.
pub(crate) fn text_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Returns the status in HTTP of a code. It is that of TensorFlow Serving, for all protocols.
fn status_of(code: ErrorCode) -> StatusCode {
    // Nginx's number for a client that has closed its connection: hardly anybody sees it.
    let client_is_gone = StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST);
    match code {
        ErrorCode::Ok => StatusCode::OK,
        ErrorCode::Cancelled | ErrorCode::RpcCancelled => client_is_gone,
        ErrorCode::InvalidArgument | ErrorCode::FailedPrecondition | ErrorCode::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        ErrorCode::DeadlineExceeded | ErrorCode::RpcDeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::NotFound | ErrorCode::DeviceNotFound | ErrorCode::TaskNotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::AlreadyExists | ErrorCode::Aborted => StatusCode::CONFLICT,
        ErrorCode::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorCode::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::Unavailable | ErrorCode::RpcUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
