//! [`Security`]: who may ask for what. Certificates and tokens come from files, which are read again when they change.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::time::Duration;

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
    /// How long files are taken for what they were when they were last looked at.
    pub trust_time: Duration,
}

impl Security {
    /// Asks for tokens, of a file.
    pub fn set_tokens(&mut self, path: &Path) -> Result<(), Error> {
        let read = |paths: &[PathBuf]| {
            let file = NamedFile::read("tokens", &paths[0])?;
            Tokens::parse(&file.name, &file.bytes)
        };
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
            let given = |what: &str, path: &Option<PathBuf>| {
                let path = path.as_ref();
                path.map(|path| NamedFile::read(what, path)).transpose()
            };
            let cert = NamedFile::read("certificate", &files.cert)?;
            let key = NamedFile::read("key", &files.key)?;
            let client_ca = given("authority of clients", &files.client_ca)?;
            let revoked = given("revoked certificates", &files.revoked)?;
            let pem = ServerPem {
                cert: cert.pem(),
                key: key.pem(),
                client_ca: client_ca.as_ref().map(NamedFile::pem),
                revoked: revoked.as_ref().map(NamedFile::pem),
            };
            server_config(&pem, &[b"h2", b"http/1.1"])
        };
        self.tls = Some(Watched::new(paths, config)?);
        Ok(())
    }

    /// Returns by what connections are encrypted, if they are.
    #[cfg(feature = "tls")]
    pub fn tls(&self) -> Option<Arc<tokio_rustls::rustls::ServerConfig>> {
        self.tls
            .as_ref()
            .map(|tls| Arc::clone(&*tls.get(self.trust_time)))
    }

    /// Checks that a request may ask for something, by its head. `None` is open to all.
    ///
    /// # Errors
    ///
    /// `Unauthenticated` without a token that is known, `PermissionDenied` for one without the scope.
    pub fn check(&self, headers: &HeaderMap, scope: Option<Scope>) -> Result<(), Refusal> {
        match (&self.tokens, scope) {
            (Some(tokens), Some(scope)) => tokens.get(self.trust_time).check(headers, scope),
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

/// A file of the command line that was read, and its name for errors: the kind of its content, and its path.
struct NamedFile {
    name: String,
    bytes: Vec<u8>,
}

impl NamedFile {
    /// Reads a file of [`MAX_FILE_BYTES`] at most, also one that grows meanwhile or has no end.
    fn read(what: &str, path: &Path) -> Result<NamedFile, Error> {
        let name = format!("{what} '{}'", path.display());
        let refused = |why: &str| Error::invalid_argument(format!("{name}: {why}"));
        let unread = |error: &io::Error| refused(&format!("cannot be read: {}", text_of(error)));
        let file = File::open(path).map_err(|error| unread(&error))?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        let n_read = read.map_err(|error| unread(&error))?;
        match n_read as u64 > MAX_FILE_BYTES {
            true => Err(refused(&format!("has more than {MAX_FILE_BYTES} bytes"))),
            false => Ok(NamedFile { name, bytes }),
        }
    }

    #[cfg(feature = "tls")]
    fn pem(&self) -> tfrt_wire::tls::NamedPem<'_> {
        tfrt_wire::tls::NamedPem {
            name: &self.name,
            text: &self.bytes,
        }
    }
}
