//! [`Address`]: where a task is reached.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use tfrt_async::Error;

/// A place at which a task is reached: `127.0.0.1:7000`, `[::1]:7000`, `unix:/run/task`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An address and a port of a network; 0 as port listens on a free one.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        match text.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => Ok(Address::Unix(path.into())),
            _ => text.parse().map(Address::Tcp).map_err(|_| {
                Error::invalid_argument(format!(
                    "expected an address such as 127.0.0.1:7000 or unix:/run/task, found '{text}'"
                ))
            }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
