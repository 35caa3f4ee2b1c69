//! Sockets: opened, connected, and asked who is at the other end. None of them ever blocks.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    getpeername, getsockname, listen, socket_with, sockopt,
};
use tfrt_async::{Error, ErrorCode};

use super::Address;
use crate::endpoint::{Origin, THREE_WAYS};

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1_024;

fn family(address: &Address) -> AddressFamily {
    match address {
        Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
        Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    }
}

/// Returns a socket that listens, and where.
///
/// # Errors
///
/// `Unavailable`, with the address and the reason.
pub fn listener(address: &Address) -> Result<(OwnedFd, Address), Error> {
    let failed = |error: Errno| Error::unavailable(format!("can't listen at {address}: {error}"));
    let fd = socket_with(family(address), SocketType::STREAM, FLAGS, None).map_err(failed)?;
    match address {
        Address::Tcp(at) => {
            sockopt::set_socket_reuseaddr(&fd, true).map_err(failed)?;
            bind(&fd, at).map_err(failed)?;
        }
        Address::Unix(path) => bind_path(&fd, path).map_err(failed)?,
    }
    listen(&fd, BACKLOG).map_err(failed)?;
    let found = match address {
        Address::Tcp(at) => {
            let found = getsockname(&fd).map_err(failed)?;
            Address::Tcp(found.try_into().unwrap_or(*at))
        }
        Address::Unix(_) => address.clone(),
    };
    Ok((fd, found))
}

/// Binds a socket to a path; a socket that is left there and on which nobody listens gives way.
fn bind_path(fd: &OwnedFd, path: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(path)?;
    match bind(fd, &address) {
        Err(Errno::ADDRINUSE) => {
            let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
            if connect(&probe, &address) != Err(Errno::CONNREFUSED) {
                return Err(Errno::ADDRINUSE);
            }
            rustix::fs::unlink(path)?;
            bind(fd, &address)
        }
        result => result,
    }
}

/// Begins to connect. Returns the socket, and whether it is connected.
pub fn dial(address: &Address) -> Result<(OwnedFd, bool), Errno> {
    let fd = socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
    let connected = match address {
        Address::Tcp(at) => connect(&fd, at),
        Address::Unix(path) => connect(&fd, &SocketAddrUnix::new(path.as_path())?),
    };
    match connected {
        Ok(()) => Ok((fd, true)),
        Err(Errno::INPROGRESS) => Ok((fd, false)),
        Err(error) => Err(error),
    }
}

/// Takes a connection of a listener; none if there is none.
pub fn accept(listener: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    loop {
        match accept_with(listener, FLAGS) {
            Ok(fd) => return Ok(Some(fd)),
            Err(Errno::AGAIN) => return Ok(None),
            // It has gone before it was taken.
            Err(Errno::CONNABORTED | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Says who is at the other end of a connection, and lets short messages go at once.
pub fn origin(fd: &OwnedFd) -> Result<Origin, Errno> {
    match sockopt::socket_domain(fd)? {
        AddressFamily::UNIX => {
            let user = sockopt::socket_peercred(fd.as_fd())?.uid;
            match user == rustix::process::geteuid() {
                true => Ok(Origin::SameUser),
                false => Ok(Origin::Network),
            }
        }
        _ => {
            sockopt::set_tcp_nodelay(fd, true)?;
            let peer = getpeername(fd)?;
            let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
            let is_here = |peer: SocketAddr| peer.ip().to_canonical().is_loopback();
            match peer.is_some_and(is_here) {
                true => Ok(Origin::Loopback),
                false => Ok(Origin::Network),
            }
        }
    }
}

/// Checks that a listener at an address is allowed.
///
/// # Errors
///
/// `PermissionDenied` if others than this machine can reach it and nothing protects it.
pub fn check_listener(address: &Address, is_protected: bool) -> Result<(), Error> {
    let is_here = match address {
        Address::Tcp(at) => at.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    };
    if is_here || is_protected {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::PermissionDenied,
        format!("can't listen at {address}: {THREE_WAYS}, found none of them"),
    ))
}
