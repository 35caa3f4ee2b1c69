//! [`server_config`]: TLS of a server whose clients are no tasks, such as one of HTTP.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tfrt_async::Error;

use super::{certificates, refused, revocation_lists};

/// A text in PEM, under the name that errors have for it, such as that of its file.
#[derive(Clone, Copy)]
pub struct NamedPem<'p> {
    /// The name.
    pub name: &'p str,
    /// The text.
    pub text: &'p [u8],
}

/// Certificates and the key of a server.
#[derive(Clone, Copy)]
pub struct ServerPem<'p> {
    /// The certificate of the server, and those between it and its authority.
    pub cert: NamedPem<'p>,
    /// Its private key.
    pub key: NamedPem<'p>,
    /// The certificates of the authority that has signed those of clients: each has to show one. `None` if they need none.
    pub client_ca: Option<NamedPem<'p>>,
    /// The certificates of clients that were revoked, as lists that their authority has signed.
    pub revoked: Option<NamedPem<'p>>,
}

/// Reads certificates and the key, for a server of these protocols, the one that it likes best in front. As for tasks, it
/// is TLS 1.3 alone, and sessions are not resumed.
///
/// # Errors
///
/// `InvalidArgument` with the name of the text that is none, or of the list of revoked certificates if there is no
/// authority that has signed them.
pub fn server_config(pem: &ServerPem<'_>, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(pem.cert.name, pem.cert.text)?;
    let key = PrivateKeyDer::from_pem_slice(pem.key.text);
    let key = key.map_err(|error| refused(pem.key.name, &error))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| refused("TLS", &error))?;
    let builder = match (pem.client_ca, pem.revoked) {
        (None, None) => builder.with_no_client_auth(),
        (None, Some(revoked)) => {
            let why = "expected no list without the authority of clients, which has signed it";
            return Err(refused(revoked.name, &why));
        }
        (Some(ca), revoked) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(ca.name, ca.text)? {
                roots.add(root).map_err(|error| refused(ca.name, &error))?;
            }
            let lists = match revoked {
                None => Vec::new(),
                Some(revoked) => revocation_lists(revoked.name, revoked.text)?,
            };
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                .with_crls(lists)
                .build()
                .map_err(|error| refused(ca.name, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| refused(pem.key.name, &error))?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}
