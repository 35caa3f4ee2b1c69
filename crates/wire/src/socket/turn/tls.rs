//! Connections in TLS: bytes pass through it on their way between the socket and the endpoint, on the same threads.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use rustls::Connection;

use super::{Inner, MAX_FRAMES, OWN_BYTES, Socket, TURN_BYTES, Thing, advance, gather};
use crate::endpoint::ConnectionId;
use crate::tls::{Tls, explain};

/// The bytes that are read from a socket at once.
pub(super) const SCRATCH_BYTES: usize = 64 << 10;

/// TLS on a connection.
pub(super) struct Channel {
    connection: Connection,
    /// Whether the endpoint was told who is at the other end.
    is_told: bool,
}

impl Channel {
    /// Begins TLS.
    pub fn new(tls: &Tls, dials: bool) -> Result<Channel, String> {
        let connection = tls.connection(dials);
        Ok(Channel {
            connection: connection.map_err(|error| explain(&error))?,
            is_told: false,
        })
    }
}

/// A socket that rustls writes to; a peer that is gone raises no signal.
struct Out<'s>(&'s OwnedFd);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let slices = &slices[..slices.len().min(512)];
        let sent = sendmsg(self.0, slices, &mut SendAncillaryBuffer::default(), flags);
        Ok(sent?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inner {
    /// Reads what has come on a connection, if it is one in TLS.
    pub(super) fn read_tls(&mut self, epoll: &OwnedFd, token: u64, now: Instant) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(SCRATCH_BYTES, 0);
        let mut n_read = 0;
        let id = loop {
            let Some(Thing::Connection(socket)) = self.things.get(&token) else {
                return;
            };
            let id = socket.id;
            if n_read >= TURN_BYTES || self.endpoint.is_closing(id) {
                break id;
            }
            let why = match rustix::io::read(&socket.fd, &mut scratch) {
                Ok(0) => match socket.channel.as_ref().is_some_and(|it| it.is_told) {
                    true => "it has closed the connection".to_owned(),
                    false => "it has closed the connection before the handshake of TLS was done"
                        .to_owned(),
                },
                Ok(n) => {
                    n_read += n;
                    match self.decrypt(token, id, &scratch[..n], now) {
                        Ok(()) => continue,
                        Err(why) => {
                            // The alert goes out, and the peer has time to read it.
                            self.write_tls(epoll, id, now, OWN_BYTES);
                            self.failed.insert(id, why);
                            self.scratch = scratch;
                            return;
                        }
                    }
                }
                Err(Errno::AGAIN) => break id,
                Err(Errno::INTR) => continue,
                Err(error) => error.to_string(),
            };
            self.broken.insert(id, why);
            break id;
        };
        self.scratch = scratch;
        self.write_tls(epoll, id, now, TURN_BYTES);
    }

    /// Takes bytes of a socket, and hands what was in them to the endpoint.
    fn decrypt(
        &mut self,
        token: u64,
        id: ConnectionId,
        mut bytes: &[u8],
        now: Instant,
    ) -> Result<(), String> {
        let Some(Thing::Connection(Socket {
            channel: Some(channel),
            ..
        })) = self.things.get_mut(&token)
        else {
            return Ok(());
        };
        while !bytes.is_empty() {
            let connection = &mut channel.connection;
            let read = connection.read_tls(&mut bytes);
            read.map_err(|error| error.to_string())?;
            let processed = connection.process_new_packets();
            processed.map_err(|error| explain(&error))?;
            if !channel.is_told && !connection.is_handshaking() {
                channel.is_told = true;
                let task = match &self.tls {
                    Some(tls) => tls.task_of(connection),
                    None => Err("there are no certificates".to_owned()),
                };
                self.endpoint.authenticated(id, task);
            }
            loop {
                let [first, second] = self.endpoint.space(id);
                let space = match first.is_empty() {
                    true => second,
                    false => first,
                };
                if space.is_empty() {
                    // It is over; what still comes is of no use.
                    return Ok(());
                }
                match connection.reader().read(space) {
                    Ok(0) => break,
                    Ok(n) => self.endpoint.filled(id, n, now),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Writes what TLS has to say and, once its handshake is done, frames, while there is room.
    pub(super) fn write_tls(
        &mut self,
        epoll: &OwnedFd,
        id: ConnectionId,
        now: Instant,
        most: usize,
    ) {
        let token = self.tokens.get(&id);
        let Some((token, Thing::Connection(socket))) =
            token.and_then(|token| Some((*token, self.things.get_mut(token)?)))
        else {
            return;
        };
        let Some(channel) = &mut socket.channel else {
            return;
        };
        let connection = &mut channel.connection;
        let mut n_written = 0;
        let is_waiting = 'turn: loop {
            while connection.wants_write() {
                match connection.write_tls(&mut Out(&socket.fd)) {
                    Ok(n) => n_written += n,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 'turn true,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.broken.insert(id, error.to_string());
                        return;
                    }
                }
            }
            if !channel.is_told {
                break false;
            }
            while socket.frames.len() < MAX_FRAMES {
                let Some(frame) = self.endpoint.next_frame(id, now) else {
                    break;
                };
                let len = frame.len_bytes();
                socket.frames.push_back(frame);
                if len >= OWN_BYTES {
                    break;
                }
            }
            if socket.frames.is_empty() {
                break false;
            }
            if n_written >= most {
                break true;
            }
            let slices = gather(&socket.frames, socket.written);
            let taken = connection.writer().write_vectored(&slices);
            drop(slices);
            match taken {
                Ok(n) => advance(&mut socket.frames, &mut socket.written, n),
                Err(error) => {
                    self.broken.insert(id, error.to_string());
                    return;
                }
            }
        };
        self.wait_for_room(epoll, token, is_waiting);
    }
}
