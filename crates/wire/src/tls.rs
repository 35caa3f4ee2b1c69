//! [`Tls`]: certificates by which tasks prove who they are, and by which connections are encrypted; [`server_config`] is
//! for servers of others.
//!
//! Both ends show a certificate that the authority of the cluster has signed. Its only URI that begins with `spiffe://`
//! names the task: `spiffe://DOMAIN/job/worker/task/1` is `/job:worker/task:1`; all tasks have one domain. A name of an
//! endpoint stands for the task of that name, or for the one behind its last ` as `: `client of 10.0.0.1:7000 as
//! /job:worker/task:1`.
//!
//! TLS 1.3 alone: no renegotiation, no ciphers to choose badly. Sessions are not resumed, since a certificate that was
//! revoked since would not be looked at again.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, OtherError, RootCertStore, ServerConfig, ServerConnection,
    SignatureScheme,
};
use tfrt_async::Error;
use webpki::{EndEntityCert, KeyUsage, OwnedCertRevocationList, RevocationOptionsBuilder};

mod server;

pub use server::{NamedPem, ServerPem, server_config};

/// The protocol that runs inside TLS, so that no other server of the cluster's authority is taken for a task.
const PROTOCOL: &[u8] = b"tfrt-wire/1";

/// The text before the path of a task in the URI of its certificate.
const SCHEME: &str = "spiffe://";

/// Certificates and keys as texts in PEM.
#[derive(Clone, Copy)]
pub struct Pem<'p> {
    /// The certificates of the authority that has signed those of all tasks.
    pub ca: &'p [u8],
    /// The certificate of this task, and those between it and the authority.
    pub cert: &'p [u8],
    /// Its private key.
    pub key: &'p [u8],
    /// The certificates that were revoked, as lists that the authority has signed.
    pub revoked: Option<&'p [u8]>,
}

/// The certificates of a task, ready for connections. Clones share them.
#[derive(Clone)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    own: TaskIdentity,
}

/// The task that a certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TaskIdentity {
    domain: String,
    name: String,
}

impl Tls {
    /// Reads certificates and the key.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the text (`ca`, `cert`, `key`, `revoked`) that is none, or what the certificate of this task
    /// lacks.
    pub fn from_pem(pem: &Pem<'_>) -> Result<Tls, Error> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for root in certificates("ca", pem.ca)? {
            roots.add(root).map_err(|error| refused("ca", &error))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates("cert", pem.cert)?;
        let own = TaskIdentity::of(&chain[0])
            .map_err(|message| Error::invalid_argument(format!("cert: {message}")))?;
        let key = PrivateKeyDer::from_pem_slice(pem.key).map_err(|error| refused("key", &error))?;
        let revoked = match pem.revoked {
            None => Vec::new(),
            Some(text) => revocation_lists("revoked", text)?,
        };

        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .with_crls(revoked.clone())
            .build()
            .map_err(|error| refused("ca", &error))?;
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refused("TLS", &error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|error| refused("key", &error))?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];

        let verifier = TaskVerifier::new(roots, &revoked, provider.clone())?;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refused("TLS", &error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(chain, key)
            .map_err(|error| refused("key", &error))?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Tls {
            client: Arc::new(client),
            server: Arc::new(server),
            own,
        })
    }

    /// Returns the name of the task that the certificate is of, such as `/job:worker/task:1`.
    pub fn task(&self) -> &str {
        &self.own.name
    }

    /// Begins TLS on a connection.
    pub(crate) fn connection(&self, dials: bool) -> Result<Connection, rustls::Error> {
        if !dials {
            return Ok(ServerConnection::new(self.server.clone())?.into());
        }
        // Tasks are told apart by the URIs of their certificates; the name of a host is not looked at.
        let nowhere = ServerName::try_from("task.invalid").expect("it is a name");
        Ok(ClientConnection::new(self.client.clone(), nowhere)?.into())
    }

    /// Returns the task at the other end of a connection whose handshake is done.
    pub(crate) fn task_of(&self, connection: &Connection) -> Result<String, String> {
        let certificates = connection.peer_certificates().unwrap_or_default();
        let first = certificates.first();
        let first = first.ok_or("expected a certificate of the peer, found none")?;
        let found = TaskIdentity::of(first)
            .map_err(|message| format!("the peer's certificate: {message}"))?;
        match found.domain == self.own.domain {
            true => Ok(found.name),
            false => Err(format!(
                "expected a certificate of the domain '{}', found one of '{}'",
                self.own.domain, found.domain
            )),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({})", self.own.name)
    }
}

fn refused(what: &str, error: &dyn fmt::Display) -> Error {
    Error::invalid_argument(format!("{what}: {error}"))
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| refused(what, &error))?;
    match all.is_empty() {
        true => Err(refused(what, &"expected a certificate in PEM, found none")),
        false => Ok(all),
    }
}

fn revocation_lists(
    what: &str,
    pem: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, Error> {
    let all = CertificateRevocationListDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| refused(what, &error))?;
    match all.is_empty() {
        true => Err(refused(what, &"expected a list in PEM, found none")),
        false => Ok(all),
    }
}

impl TaskIdentity {
    /// Returns the task that a certificate names.
    fn of(certificate: &CertificateDer<'_>) -> Result<TaskIdentity, String> {
        let certificate = EndEntityCert::try_from(certificate).map_err(|it| it.to_string())?;
        let mut uris = certificate
            .valid_uri_names()
            .filter(|uri| uri.starts_with(SCHEME));
        match (uris.next(), uris.next()) {
            (Some(uri), None) => TaskIdentity::parse(uri),
            (None, _) => Err(format!(
                "expected a URI such as {SCHEME}DOMAIN/job/worker/task/1 among its names, found none"
            )),
            (Some(_), Some(_)) => Err(format!("expected one URI of {SCHEME}, found several")),
        }
    }

    fn parse(uri: &str) -> Result<TaskIdentity, String> {
        let wrong = || {
            let uri = uri.escape_debug();
            format!("expected a URI such as {SCHEME}DOMAIN/job/worker/task/1, found '{uri}'")
        };
        let rest = uri.strip_prefix(SCHEME).ok_or_else(wrong)?;
        let (domain, path) = rest.split_once('/').ok_or_else(wrong)?;
        let parts: Vec<&str> = path.split('/').collect();
        let is_part = |part: &&str| {
            let fits = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
            !part.is_empty() && part.bytes().all(fits)
        };
        let fits = parts.len().is_multiple_of(2) && parts.iter().all(is_part) && is_part(&domain);
        if !fits || uri.len() > crate::message::MAX_NAME_BYTES {
            return Err(wrong());
        }
        let pairs = parts.chunks_exact(2);
        let name = pairs.map(|pair| format!("/{}:{}", pair[0], pair[1]));
        Ok(TaskIdentity {
            domain: domain.to_owned(),
            name: name.collect(),
        })
    }
}

/// A verifier of the tasks that this one dials: who has signed, when it is valid, for what, and whether it was revoked.
/// Which task it is is looked at once the handshake is done.
#[derive(Debug)]
struct TaskVerifier {
    roots: Arc<RootCertStore>,
    revoked: Vec<webpki::CertRevocationList<'static>>,
    provider: Arc<CryptoProvider>,
}

impl TaskVerifier {
    fn new(
        roots: Arc<RootCertStore>,
        revoked: &[CertificateRevocationListDer<'_>],
        provider: Arc<CryptoProvider>,
    ) -> Result<TaskVerifier, Error> {
        let lists = revoked.iter().map(|list| {
            let list = OwnedCertRevocationList::from_der(list);
            list.map(Into::into)
                .map_err(|error| refused("revoked", &error))
        });
        Ok(TaskVerifier {
            roots,
            revoked: lists.collect::<Result<_, Error>>()?,
            provider,
        })
    }
}

impl ServerCertVerifier for TaskVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = EndEntityCert::try_from(end_entity).map_err(of_webpki)?;
        let lists: Vec<&webpki::CertRevocationList<'_>> = self.revoked.iter().collect();
        // Without lists nothing is looked up; with lists, each certificate must be covered by one.
        let revocation = RevocationOptionsBuilder::new(&lists).ok();
        certificate
            .verify_for_usage(
                self.provider.signature_verification_algorithms.all,
                &self.roots.roots,
                intermediates,
                now,
                KeyUsage::server_auth(),
                revocation.map(RevocationOptionsBuilder::build),
                None,
            )
            .map_err(of_webpki)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

fn of_webpki(error: webpki::Error) -> rustls::Error {
    use webpki::Error as Found;
    let error = match error {
        Found::CertExpired { time, not_after } => {
            CertificateError::ExpiredContext { time, not_after }
        }
        Found::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        Found::UnknownIssuer => CertificateError::UnknownIssuer,
        Found::CertRevoked => CertificateError::Revoked,
        Found::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        Found::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    };
    error.into()
}

/// Returns an error of TLS in words that say whose certificate is wrong, and how.
pub(crate) fn explain(error: &rustls::Error) -> String {
    use rustls::Error as Found;
    match error {
        Found::InvalidCertificate(why) => {
            let why = match why {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "it has expired".to_owned()
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "it is not valid yet".to_owned()
                }
                CertificateError::UnknownIssuer => {
                    "the authority of this cluster has not signed it".to_owned()
                }
                CertificateError::Revoked => "it was revoked".to_owned(),
                CertificateError::UnknownRevocationStatus => {
                    "no list of revoked certificates is of its authority".to_owned()
                }
                CertificateError::InvalidPurpose
                | CertificateError::InvalidPurposeContext { .. } => {
                    "its usage has to allow both clients and servers".to_owned()
                }
                other => other.to_string(),
            };
            format!("the peer's certificate is refused: {why}")
        }
        Found::NoCertificatesPresented => {
            "expected a certificate of the peer, found none".to_owned()
        }
        Found::AlertReceived(alert) => {
            use AlertDescription as Alert;
            let why = match alert {
                Alert::CertificateExpired => {
                    "refuses this task's certificate: it has expired, or is not valid yet"
                }
                Alert::CertificateRevoked => "refuses this task's certificate: it was revoked",
                Alert::UnknownCA => {
                    "refuses this task's certificate: its authority has not signed it"
                }
                Alert::CertificateRequired => "wants a certificate, and was given none",
                Alert::ProtocolVersion => "speaks no TLS 1.3",
                Alert::HandshakeFailure => "has no cipher in common with this task",
                Alert::UnsupportedCertificate => {
                    "refuses this task's certificate: its usage has to allow both clients and servers"
                }
                Alert::NoApplicationProtocol => "is no task of tfrt",
                other => return format!("the peer ends TLS with the alert {other:?}"),
            };
            format!("the peer {why}")
        }
        Found::InvalidMessage(_) => "expected TLS 1.3, found other bytes".to_owned(),
        Found::PeerIncompatible(why) => {
            format!("expected TLS 1.3 and a cipher that both have, found neither: {why:?}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_a_task() {
        let found = TaskIdentity::parse("spiffe://cluster.example/job/worker/task/1").unwrap();
        assert_eq!(found.name, "/job:worker/task:1");
        assert_eq!(found.domain, "cluster.example");
        for wrong in [
            "spiffe://cluster.example",
            "spiffe:///job/worker/task/1",
            "spiffe://d/job/worker/task",
            "spiffe://d/job//task/1",
            "spiffe://d/job/w:x/task/1",
            "https://d/job/worker/task/1",
        ] {
            let message = TaskIdentity::parse(wrong).unwrap_err();
            assert!(message.ends_with(&format!("found '{wrong}'")), "{message}");
        }
    }
}
