//! [`server_config`]: TLS of a server whose clients are no tasks, such as one of HTTP.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tfrt_async::Error;

use super::{certificates, refused, revocation_lists};

/// Certificates and the key of a server, as texts in PEM.
#[derive(Clone, Copy)]
pub struct ServerPem<'p> {
    /// The certificate of the server, and those between it and its authority.
    pub cert: &'p [u8],
    /// Its private key.
    pub key: &'p [u8],
    /// The certificates of the authority that has signed those of clients: each has to show one. `None` if they need none.
    pub client_ca: Option<&'p [u8]>,
    /// The certificates of clients that were revoked, as lists that their authority has signed.
    pub revoked: Option<&'p [u8]>,
}

/// Reads certificates and the key, for a server of these protocols, the one that it likes best in front. As for tasks, it
/// is TLS 1.3 alone, and sessions are not resumed.
///
/// # Errors
///
/// `InvalidArgument` with the text (`cert`, `key`, `client_ca`, `revoked`) that is none, or that there are revoked
/// certificates without an authority.
pub fn server_config(pem: &ServerPem<'_>, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates("cert", pem.cert)?;
    let key = PrivateKeyDer::from_pem_slice(pem.key).map_err(|error| refused("key", &error))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| refused("TLS", &error))?;
    let builder = match (pem.client_ca, pem.revoked) {
        (None, None) => builder.with_no_client_auth(),
        (None, Some(_)) => {
            let why = "expected none without `client_ca`, which has signed them";
            return Err(refused("revoked", &why));
        }
        (Some(ca), revoked) => {
            let mut roots = RootCertStore::empty();
            for root in certificates("client_ca", ca)? {
                roots
                    .add(root)
                    .map_err(|error| refused("client_ca", &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                .with_crls(revocation_lists(revoked)?)
                .build()
                .map_err(|error| refused("client_ca", &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| refused("key", &error))?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}
