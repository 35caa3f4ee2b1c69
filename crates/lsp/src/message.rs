//! JSON-RPC: requests, notifications, responses.

use serde::Serialize;
use serde_json::Value;

/// A message from the editor.
#[derive(Debug)]
pub(crate) enum Message {
    /// A request, which wants an answer.
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    /// A notification, which wants no answer.
    Notification { method: String, params: Value },
    /// A response to a request, of which we make none.
    Response,
    /// A message that is none of these.
    Invalid { id: Id, error: Failure },
}

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Number(i64),
    Text(String),
    /// `null`: the id of a request that can't be read.
    Unknown,
}

/// The error of a request without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    pub code: i32,
    pub message: String,
}

/// The codes that JSON-RPC and the protocol give.
pub(crate) mod code {
    pub const PARSE_ERROR: i32 = -32700;
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL_ERROR: i32 = -32603;
    pub const SERVER_NOT_INITIALIZED: i32 = -32002;
    pub const REQUEST_CANCELLED: i32 = -32800;
    pub const REQUEST_FAILED: i32 = -32803;
}

impl Failure {
    pub fn new(code: i32, message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure { code, message }
    }
}

/// An answer as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct Response<'a> {
    pub jsonrpc: Version,
    pub id: &'a Id,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of a request, or its error.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Result(Value),
    Error(Failure),
}

/// A notification as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct Notification<P> {
    pub jsonrpc: Version,
    pub method: &'static str,
    pub params: P,
}

/// The version of JSON-RPC.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) enum Version {
    #[serde(rename = "2.0")]
    Two,
}

impl Message {
    /// Makes a message of bytes that are none.
    pub fn unreadable(reason: String) -> Message {
        Message::Invalid {
            id: Id::Unknown,
            error: Failure::new(code::PARSE_ERROR, reason),
        }
    }

    /// Parses a message.
    pub fn from_json(mut value: Value) -> Message {
        let id = value.get("id").map(Id::from_json);
        let invalid = |message| Message::Invalid {
            id: id.clone().flatten().unwrap_or(Id::Unknown),
            error: Failure::new(code::INVALID_REQUEST, message),
        };
        let Some(members) = value.as_object_mut() else {
            return invalid("expected an object");
        };
        let params = members.remove("params").unwrap_or_default();
        match (members.remove("method"), &id) {
            (Some(Value::String(method)), None) => Message::Notification { method, params },
            (Some(Value::String(method)), Some(Some(id))) => Message::Request {
                id: id.clone(),
                method,
                params,
            },
            (Some(Value::String(_)), Some(None)) => {
                invalid("expected an integer or a string as id")
            }
            (Some(_), _) => invalid("expected a string as method"),
            (None, _) if members.contains_key("result") || members.contains_key("error") => {
                Message::Response
            }
            (None, _) => invalid("expected a method"),
        }
    }
}

impl Id {
    /// Reads an id; `None` if it is neither integer nor string.
    pub fn from_json(value: &Value) -> Option<Id> {
        match value {
            Value::Number(number) => number.as_i64().map(Id::Number),
            Value::String(text) => Some(Id::Text(text.clone())),
            _ => None,
        }
    }
}
