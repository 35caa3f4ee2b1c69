//! [`Access`]: how the tasks of a cluster prove to each other that they belong to it.

use std::path::{Path, PathBuf};

use tfrt_async::{ClusterTask, Error};
use tfrt_wire::proof::Secret;
#[cfg(feature = "tls")]
use tfrt_wire::tls::{Pem, Tls};

use crate::cluster::Cluster;

/// The most bytes of a file with a secret, a key or certificates.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How tasks prove that they belong to a cluster.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// By being on this machine: they are reached at loopback addresses, and by Unix sockets of the same user.
    #[default]
    ThisMachine,
    /// By a secret that all share.
    Secret(Secret),
    /// By certificates, which name each.
    #[cfg(feature = "tls")]
    Certificates(Tls),
}

impl Access {
    /// Reads what the file of a cluster names, for one of its tasks. Names of files are seen from a folder, that of the
    /// file of the cluster; in them `{job}` and `{task}` stand for the task.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the entry whose file can't be read, or is none of its kind, or if there are both
    /// certificates and a secret; `Unimplemented` for certificates without the feature `tls`.
    pub fn of_cluster(
        cluster: &Cluster,
        task: &ClusterTask,
        folder: &Path,
    ) -> Result<Access, Error> {
        let secret = cluster.security().and_then(|it| it.secret.as_deref());
        let read = |entry: &str, name: &str| read(entry, folder, task, name);
        match (cluster.tls(), secret) {
            (None, None) => Ok(Access::ThisMachine),
            (None, Some(name)) => {
                let bytes = read("security.secret", name)?;
                let secret = Secret::new(bytes.trim_ascii_end());
                let secret = secret.map_err(|why| {
                    Error::invalid_argument(format!("security.secret, '{name}': {why}"))
                })?;
                Ok(Access::Secret(secret))
            }
            (Some(_), Some(_)) => Err(Error::invalid_argument(
                "expected certificates, [tls], or a secret, security.secret, found both",
            )),
            #[cfg(feature = "tls")]
            (Some(files), None) => {
                let revoked = files.revoked.as_deref();
                let revoked = revoked.map(|name| read("tls.revoked", name)).transpose()?;
                let tls = Tls::from_pem(&Pem {
                    ca: &read("tls.ca", &files.ca)?,
                    cert: &read("tls.cert", &files.cert)?,
                    key: &read("tls.key", &files.key)?,
                    revoked: revoked.as_deref(),
                });
                let tls = tls
                    .map_err(|error| Error::invalid_argument(format!("tls.{}", error.message())))?;
                if tls.task() != task.to_string() {
                    let found = tls.task();
                    return Err(Error::invalid_argument(format!(
                        "tls.cert: expected a certificate of {task}, found one of {found}"
                    )));
                }
                Ok(Access::Certificates(tls))
            }
            #[cfg(not(feature = "tls"))]
            (Some(_), None) => {
                let _ = read;
                Err(Error::new(
                    tfrt_async::ErrorCode::Unimplemented,
                    "tls: this build has no TLS (cargo feature `tls`)",
                ))
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Access {
    /// Returns the task that the certificate is of.
    pub(crate) fn task(&self) -> Result<Option<ClusterTask>, Error> {
        match self {
            #[cfg(feature = "tls")]
            Access::Certificates(tls) => crate::task::parse(tls.task()).map(Some),
            _ => Ok(None),
        }
    }

    /// Starts an endpoint.
    pub(crate) fn start(
        &self,
        config: tfrt_wire::endpoint::Config,
        admission: std::sync::Arc<dyn tfrt_wire::endpoint::Admission>,
        handler: std::sync::Arc<dyn tfrt_wire::socket::Handler>,
    ) -> Result<tfrt_wire::socket::Sockets, Error> {
        use tfrt_wire::socket::Sockets;
        match self {
            #[cfg(feature = "tls")]
            Access::Certificates(tls) => Sockets::start_tls(config, tls, admission, handler),
            _ => Sockets::start(config, admission, handler),
        }
    }
}

fn read(entry: &str, folder: &Path, task: &ClusterTask, name: &str) -> Result<Vec<u8>, Error> {
    let number = task.task.to_string();
    let name = name.replace("{job}", &task.job).replace("{task}", &number);
    let path: PathBuf = folder.join(&name);
    let refused = |why: String| Err(Error::invalid_argument(format!("{entry}, '{name}': {why}")));
    // Never more than is asked for, whatever the file is.
    let bytes = std::fs::metadata(&path).and_then(|found| match found.len() > MAX_FILE_BYTES {
        true => Ok(None),
        false => std::fs::read(&path).map(Some),
    });
    match bytes {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => refused(format!("expected at most {MAX_FILE_BYTES} bytes")),
        Err(error) => refused(format!("can't be read: {error}")),
    }
}
