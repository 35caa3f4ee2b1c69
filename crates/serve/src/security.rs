//! [`Security`]: who may ask for what. Certificates and tokens come from files, which are read again when they change.

use std::path::{Path, PathBuf};
#[cfg(feature = "tls")]
use std::sync::Arc;

use hyper::HeaderMap;
use tfrt_host::Error;

use crate::refusal::{Refusal, text_of};

mod tokens;
mod watched;

pub(crate) use tokens::Scope;
use tokens::Tokens;
use watched::Watched;

/// The most bytes of a file with tokens, a key or certificates.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The files of a server that encrypts: texts in PEM.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, and those between it and its authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates of the authority of clients, each of which has to show a certificate; `None` if they need none.
    pub client_ca: Option<PathBuf>,
    /// Lists of the certificates of clients that were revoked.
    pub revoked: Option<PathBuf>,
}

/// The certificates and tokens of a server. By default there are none: whoever reaches it may ask for anything.
#[derive(Default)]
pub(crate) struct Security {
    tokens: Option<Watched<Tokens>>,
    #[cfg(feature = "tls")]
    tls: Option<Watched<Arc<tokio_rustls::rustls::ServerConfig>>>,
}

impl Security {
    /// Asks for tokens, of a file.
    pub fn set_tokens(&mut self, path: &Path) -> Result<(), Error> {
        let read = |paths: &[PathBuf]| Tokens::parse(&read("tokens", &paths[0])?);
        self.tokens = Some(Watched::new(vec![path.to_owned()], read)?);
        Ok(())
    }

    /// Encrypts connections.
    #[cfg(feature = "tls")]
    pub fn set_tls(&mut self, files: &TlsFiles) -> Result<(), Error> {
        use tfrt_wire::tls::{ServerPem, server_config};
        let files = files.clone();
        let optional = files.client_ca.iter().chain(&files.revoked);
        let paths: Vec<PathBuf> = [&files.cert, &files.key]
            .into_iter()
            .chain(optional)
            .cloned()
            .collect();
        let config = move |_: &[PathBuf]| {
            let given = |name: &str, path: &Option<PathBuf>| {
                path.as_ref().map(|path| read(name, path)).transpose()
            };
            let client_ca = given("client_ca", &files.client_ca)?;
            let revoked = given("revoked", &files.revoked)?;
            let pem = ServerPem {
                cert: &read("cert", &files.cert)?,
                key: &read("key", &files.key)?,
                client_ca: client_ca.as_deref(),
                revoked: revoked.as_deref(),
            };
            server_config(&pem, &[b"h2", b"http/1.1"])
        };
        self.tls = Some(Watched::new(paths, config)?);
        Ok(())
    }

    /// Returns by what connections are encrypted, if they are.
    #[cfg(feature = "tls")]
    pub fn tls(&self) -> Option<Arc<tokio_rustls::rustls::ServerConfig>> {
        self.tls.as_ref().map(|tls| Arc::clone(&*tls.get()))
    }

    /// Checks that a request may ask for something, by its head. `None` is open to all.
    ///
    /// # Errors
    ///
    /// `Unauthenticated` without a token that is known, `PermissionDenied` for one without the scope.
    pub fn check(&self, headers: &HeaderMap, scope: Option<Scope>) -> Result<(), Refusal> {
        match (&self.tokens, scope) {
            (Some(tokens), Some(scope)) => tokens.get().check(headers, scope),
            _ => Ok(()),
        }
    }

    /// Returns how often a file that had changed could not be read, so that what it said before stands.
    pub fn n_failed(&self) -> u64 {
        let tokens = self.tokens.as_ref().map_or(0, Watched::n_failed);
        #[cfg(feature = "tls")]
        let tls = self.tls.as_ref().map_or(0, Watched::n_failed);
        #[cfg(not(feature = "tls"))]
        let tls = 0;
        tokens + tls
    }
}

/// Reads a file of the command line, never more than is asked for.
fn read(what: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let refused = |why: String| {
        Error::invalid_argument(format!("{what}: cannot read '{}': {why}", path.display()))
    };
    let length = std::fs::metadata(path).map_err(|error| refused(text_of(&error)))?;
    if length.len() > MAX_FILE_BYTES {
        return Err(refused(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    std::fs::read(path).map_err(|error| refused(text_of(&error)))
}
