//! Places at which a task listens, and the address by which others know it.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use tfrt_async::Error;
use tfrt_wire::socket;

use super::JoinOptions;
use crate::cluster::Address;
use crate::transport::socket::{place, with_free_port};

/// The time between two tries to find the address of a name.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Returns the address by which others know this task, and the place where it listens.
pub(super) fn own(
    options: &JoinOptions,
    deadline: Option<Instant>,
) -> Result<(Address, Address), Error> {
    let listen = options.listen.as_ref();
    let Some(config) = &options.config else {
        let listen = listen.ok_or_else(|| {
            Error::invalid_argument("expected a cluster, or an address to listen at, found none")
        })?;
        if is_unspecified(listen) {
            return Err(Error::invalid_argument(format!(
                "expected an address by which other tasks reach this one, found {listen}"
            )));
        }
        let listen = with_free_port(listen)?;
        return Ok((listen.clone(), listen));
    };
    let (cluster, task) = (&config.cluster, &config.task);
    let known = cluster.address(task)?;
    if !known.is_unknown() {
        let listen = listen.unwrap_or(known);
        if listen.is_unknown() {
            return Err(Error::invalid_argument(format!(
                "the others know {task} at {known}: expected a port to listen at, found {listen}"
            )));
        }
        return Ok((known.clone(), listen.clone()));
    }
    let lead = cluster.address(cluster.lead())?;
    if lead.is_unknown() {
        let lead = cluster.lead();
        return Err(Error::invalid_argument(format!(
            "expected the address of the lead {lead}, found port 0"
        )));
    }
    let listen = match (listen, lead) {
        (Some(listen), _) => with_free_port(listen)?,
        (None, Address::Unix(path)) => {
            Address::parse(&format!("unix:{path}.{}.{}", task.job, task.task))?
        }
        (None, Address::Tcp { .. }) => {
            with_free_port(&Address::of_host(route(lead, deadline)?, 0))?
        }
    };
    let name = match &listen {
        Address::Tcp { port, .. } if is_unspecified(&listen) => {
            Address::of_host(route(lead, deadline)?, *port)
        }
        _ => listen.clone(),
    };
    Ok((name, listen))
}

/// Waits until a host has an address.
pub(super) fn resolve(
    address: &Address,
    deadline: Option<Instant>,
) -> Result<socket::Address, Error> {
    loop {
        match place(address) {
            Ok(place) => return Ok(place),
            Err(error) if deadline.is_none_or(|at| Instant::now() + RETRY_AFTER > at) => {
                return Err(error);
            }
            Err(_) => thread::sleep(RETRY_AFTER),
        }
    }
}

/// Returns the address of this machine by which it reaches another.
fn route(to: &Address, deadline: Option<Instant>) -> Result<IpAddr, Error> {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let socket::Address::Tcp(at) = resolve(to, deadline)? else {
        return Ok(loopback);
    };
    let any = match at {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    };
    // Nothing is sent: the system looks for the way.
    let found = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(at)?;
        socket.local_addr()
    });
    let found = found.map_err(|error| Error::unavailable(format!("no way to {to}: {error}")))?;
    Ok(found.ip())
}

fn is_unspecified(address: &Address) -> bool {
    let Address::Tcp { host, .. } = address else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified())
}
