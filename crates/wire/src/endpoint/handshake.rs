//! Handshakes: who is there, whether it knows the secret, and which session the two have.

use std::time::Instant;

use tfrt_async::ErrorCode;

use super::connection::Phase;
use super::{ConnectionId, Endpoint, PeerId, Role, task_of};
use crate::event::PeerState;
use crate::frame::{Header, Kind};
use crate::link::Fault;
use crate::message::{Failure, Hello, Ready, Welcome};
use crate::proof::{Secret, Side};

fn refusal(code: ErrorCode, message: String) -> Failure {
    Failure { code, message }
}

impl Endpoint {
    /// Takes a frame of a handshake, or the last frame of a connection.
    pub(super) fn shake(
        &mut self,
        id: ConnectionId,
        header: &Header,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Fault> {
        let connection = &self.connections[&id];
        let refused = match (header.kind, connection.phase) {
            (Kind::Bye, _) => {
                let failure = Failure::decode(header.kind, payload)?;
                self.left(id, failure);
                return Ok(());
            }
            (Kind::Hello, Phase::Hello) => {
                let hello = Hello::decode(payload)?;
                check_incarnation(header, hello.incarnation)?;
                self.greeted(id, hello, now)
            }
            (Kind::Welcome, Phase::Welcome) => {
                let welcome = Welcome::decode(payload)?;
                check_incarnation(header, welcome.incarnation)?;
                self.welcomed(id, welcome, now)
            }
            (Kind::Ready, Phase::Ready) => {
                let ready = Ready::decode(payload)?;
                match connection.is_ours {
                    true => return self.begin_session(id, &ready, now),
                    false => match self.proved(id, &ready, now) {
                        Ok(()) => return self.begin_session(id, &ready, now),
                        Err(failure) => Err(failure),
                    },
                }
            }
            (kind, phase) => {
                let expected = match phase {
                    Phase::Hello => "a hello",
                    Phase::Welcome => "a welcome",
                    Phase::Ready => "a ready",
                    Phase::Live => "no handshake any more",
                };
                return Err(Fault::Violation(format!(
                    "expected {expected}, found a frame '{kind}'"
                )));
            }
        };
        if let Err(failure) = refused {
            self.refuse(id, &failure);
        }
        Ok(())
    }

    /// Answers a hello.
    fn greeted(&mut self, id: ConnectionId, hello: Hello, now: Instant) -> Result<(), Failure> {
        use ErrorCode::{FailedPrecondition, PermissionDenied, ResourceExhausted, Unauthenticated};
        let own = &self.config;
        if hello.to != own.name {
            let message = format!(
                "expected a hello to {}, found one to {}: a task is called and addressed in one way by all",
                own.name, hello.to
            );
            return Err(refusal(ErrorCode::NotFound, message));
        }
        self.check_certificate(id, &hello.from)?;
        match (&own.secret, hello.has_secret) {
            (Some(_), false) => {
                let message = "expected a proof of the shared secret, found none";
                return Err(refusal(Unauthenticated, message.to_owned()));
            }
            (None, true) => {
                let message = "expected no shared secret, found a peer that has one";
                return Err(refusal(Unauthenticated, message.to_owned()));
            }
            _ => {}
        }
        let known = self.by_name.get(&hello.from).copied();
        let peer = match known {
            Some(peer) => peer,
            None if !own.accepts_unknown || hello.from == own.name => {
                let message = format!("expected a task of this cluster, found {}", hello.from);
                return Err(refusal(PermissionDenied, message));
            }
            None if self.is_full() && self.forgettable().is_none() => {
                let most = own.limits.max_connections;
                let message = format!("expected fewer than {most} peers");
                return Err(refusal(ResourceExhausted, message));
            }
            // Nobody is remembered before it has proved who it is.
            None => PeerId(usize::MAX),
        };
        let mut session = match hello.bound_to {
            0 => hello.session,
            _ => hello.session.saturating_add(1),
        };
        if let Some(link) = self.links.get(&peer) {
            if link.role == Role::Dials {
                let message = format!("expected {} to be dialled by this task", hello.from);
                return Err(refusal(FailedPrecondition, message));
            }
            if link.superseded.contains(&hello.incarnation) {
                let message = "stale incarnation: another start of this task has joined since";
                return Err(refusal(FailedPrecondition, message.to_owned()));
            }
            session = link.session_for(&hello, own.incarnation);
        }
        let connection = self.connections.get_mut(&id);
        let connection = connection.expect("it is the one that is read");
        let mut welcome = Welcome {
            from: own.name.clone(),
            incarnation: own.incarnation,
            session,
            nonce: connection.nonce,
            max_message_bytes: own.limits.max_message_bytes,
            proof: None,
        };
        let secret = own.secret.as_ref();
        welcome.proof = secret.map(|secret| secret.prove(Side::Answers, &hello, &welcome));
        connection.sums_data = hello.sums_data;
        connection.say(Kind::Welcome, own.incarnation as u64, welcome.encode());
        connection.phase = Phase::Ready;
        connection.hello = Some(hello);
        connection.welcome = Some(welcome);
        connection.since = connection.since.min(now);
        self.changed.insert(id);
        Ok(())
    }

    /// Checks that the certificate of the other end is of the task that its name stands for.
    fn check_certificate(&self, id: ConnectionId, name: &str) -> Result<(), Failure> {
        if !self.config.has_certificates {
            return Ok(());
        }
        let connection = self.connections.get(&id);
        check_certificate(connection.and_then(|it| it.certified.as_deref()), name)
    }

    /// Hears which task the certificate of the other end of a connection names, or why it names none: before anything
    /// is read of it.
    pub fn authenticated(&mut self, id: ConnectionId, task: Result<String, String>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match task {
            Ok(task) => connection.certified = Some(task),
            Err(message) => self.refuse(id, &refusal(ErrorCode::Unauthenticated, message)),
        }
    }

    /// Hears who has answered, and which session the two have.
    fn welcomed(
        &mut self,
        id: ConnectionId,
        welcome: Welcome,
        now: Instant,
    ) -> Result<(), Failure> {
        let connection = self.connections.get_mut(&id);
        let connection = connection.expect("it is the one that is read");
        let peer = connection.peer.expect("who dials knows whom");
        let hello = connection.hello.clone().expect("it was said");
        let Some(link) = self.links.get_mut(&peer) else {
            return Err(refusal(ErrorCode::Aborted, "it was removed".to_owned()));
        };
        if welcome.from != link.name {
            let message = format!("expected {} to answer, found {}", link.name, welcome.from);
            return Err(refusal(ErrorCode::NotFound, message));
        }
        if self.config.has_certificates {
            check_certificate(connection.certified.as_deref(), &link.name)?;
        }
        let secret = self.config.secret.as_ref();
        check_proof(secret, Side::Answers, &hello, &welcome, welcome.proof)?;
        if link.superseded.contains(&welcome.incarnation) {
            let message = "stale incarnation: another start of this task has answered since";
            return Err(refusal(ErrorCode::FailedPrecondition, message.to_owned()));
        }
        // Another connection, or the lease, may have ended the session that was asked for.
        if link.session.number != hello.session {
            let message = "the session has ended in the meantime".to_owned();
            return Err(refusal(ErrorCode::Aborted, message));
        }
        link.enter(welcome.session, welcome.incarnation, now);
        link.max_message_bytes = welcome.max_message_bytes;
        let proof = secret.map(|secret| secret.prove(Side::Dials, &hello, &welcome));
        connection.phase = Phase::Ready;
        connection.say_ready(&self.config, link, proof);
        connection.welcome = Some(welcome);
        self.changed.insert(id);
        Ok(())
    }

    /// Checks the proof of who has dialled, and takes it for the peer whose name it has said.
    fn proved(&mut self, id: ConnectionId, ready: &Ready, now: Instant) -> Result<(), Failure> {
        let connection = &self.connections[&id];
        let hello = connection.hello.clone().expect("it was heard");
        let welcome = connection.welcome.clone().expect("it was said");
        let secret = self.config.secret.as_ref();
        check_proof(secret, Side::Dials, &hello, &welcome, ready.proof)?;
        let peer = match self.by_name.get(&hello.from) {
            Some(peer) => *peer,
            None => {
                let since = connection.since;
                if let Some(gone) = self.forgettable().filter(|_| self.is_full()) {
                    self.remove_peer(gone);
                }
                let peer = self.insert(&hello.from, Role::Answers, since);
                if let Some(link) = self.links.get_mut(&peer) {
                    link.is_stranger = true;
                }
                peer
            }
        };
        let link = &self.links[&peer];
        let is_stale = link.superseded.contains(&hello.incarnation);
        if is_stale || link.session_for(&hello, self.config.incarnation) != welcome.session {
            let message = "another connection was faster".to_owned();
            return Err(refusal(ErrorCode::Aborted, message));
        }
        if let Some(old) = link.connection {
            self.close(old, "another connection has taken its place".to_owned());
        }
        let link = self.links.get_mut(&peer).expect("it is there");
        link.enter(welcome.session, hello.incarnation, now);
        link.max_message_bytes = hello.max_message_bytes;
        let connection = self.connections.get_mut(&id);
        let connection = connection.expect("it is the one that is read");
        connection.peer = Some(peer);
        connection.say_ready(&self.config, link, None);
        Ok(())
    }

    /// Goes on with the session where both have left it.
    fn begin_session(
        &mut self,
        id: ConnectionId,
        ready: &Ready,
        now: Instant,
    ) -> Result<(), Fault> {
        let connection = self.connections.get_mut(&id);
        let connection = connection.expect("it is the one that is read");
        let peer = connection.peer.expect("both know each other");
        connection.phase = Phase::Live;
        let limits = &self.config.limits;
        let link = self.links.get_mut(&peer).expect("it is there");
        let agreed = connection.welcome.as_ref().map(|welcome| welcome.session);
        if agreed != Some(link.session.number) {
            return Err(Fault::Torn("the session has ended in the meantime".into()));
        }
        link.connected(id, now, limits);
        link.session.resume(ready, limits)?;
        if let Some(dialing) = self.dialing.get_mut(&peer) {
            dialing.n_failed = 0;
        }
        self.changed.insert(id);
        Ok(())
    }

    /// Hears that the peer ends the connection.
    fn left(&mut self, id: ConnectionId, failure: Failure) {
        let connection = &self.connections[&id];
        let (peer, is_live) = (connection.peer, connection.is_live());
        let is_ours = connection.is_ours;
        let why = match failure.code {
            ErrorCode::Ok => failure.message,
            _ => format!("it ends the connection: {}", failure.message),
        };
        self.close(id, why.clone());
        let Some(link) = peer.and_then(|peer| self.links.get_mut(&peer)) else {
            return;
        };
        let is_over = match failure.code {
            // A handshake that came too late is tried again.
            ErrorCode::Aborted => false,
            ErrorCode::FailedPrecondition => is_ours || is_live,
            _ => is_live,
        };
        if is_over && link.connection.is_none_or(|current| current == id) {
            link.connection = None;
            link.end_session(&why, PeerState::Lost);
        }
    }

    /// Ends a connection that can't go on.
    pub(super) fn fail(&mut self, id: ConnectionId, fault: Fault) {
        let message = match fault {
            Fault::Torn(why) => return self.close(id, why),
            Fault::Violation(message) => message,
        };
        let failure = refusal(ErrorCode::InvalidArgument, message.clone());
        self.refuse(id, &failure);
        let peer = self.connections.get(&id).and_then(|it| it.peer);
        let Some(link) = peer.and_then(|peer| self.links.get_mut(&peer)) else {
            return;
        };
        if link.connection == Some(id) {
            link.connection = None;
            let why = format!("it does not keep to the protocol: {message}");
            link.end_session(&why, PeerState::Lost);
        }
    }
}

/// Checks that a certificate is of the task that a name stands for.
fn check_certificate(certified: Option<&str>, name: &str) -> Result<(), Failure> {
    let expected = task_of(name);
    let message = match certified {
        Some(found) if found == expected => return Ok(()),
        Some(found) => format!("expected a certificate of {expected}, found one of {found}"),
        None => format!("expected a certificate of {expected}, found none"),
    };
    Err(refusal(ErrorCode::Unauthenticated, message))
}

fn check_incarnation(header: &Header, incarnation: u128) -> Result<(), Fault> {
    if header.incarnation != incarnation as u64 {
        return Err(Fault::Violation(format!(
            "expected a frame of the incarnation {:#x}, found {:#x}",
            incarnation as u64, header.incarnation
        )));
    }
    Ok(())
}

fn check_proof(
    secret: Option<&Secret>,
    side: Side,
    hello: &Hello,
    welcome: &Welcome,
    proof: Option<[u8; 32]>,
) -> Result<(), Failure> {
    let wrong = match (secret, proof) {
        (Some(secret), Some(proof)) if secret.is_proved(side, hello, welcome, &proof) => {
            return Ok(());
        }
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => "expected a proof of the shared secret, found that of another",
        (Some(_), None) => "expected a proof of the shared secret, found none",
        (None, Some(_)) => "expected no proof of a shared secret, found one",
    };
    Err(refusal(ErrorCode::Unauthenticated, wrong.to_owned()))
}
