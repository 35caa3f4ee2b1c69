//! [`Server`]: listeners, the threads that move bytes, and the end.
//!
//! Each of a few threads drives its own connections, from the first byte to the last; models run on the host's queue,
//! or, if a call takes less than waking another thread does, on the thread that has read the request.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tfrt_host::{Error, ErrorCode, HostContext};
use tokio::sync::watch;

use crate::admission::{Admission, Ticket};
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::repository::Repository;
use crate::security::Security;
#[cfg(feature = "tls")]
use crate::security::TlsFiles;
#[cfg(feature = "otel")]
use crate::traces::{Collector, Exporter, Warn};

mod connection;
mod signals;
mod threads;
mod unread;

pub(crate) use connection::first;
pub use signals::Ended;
use threads::Threads;

/// The state that all connections of a server share.
pub(crate) struct Shared {
    pub name: String,
    pub host: HostContext,
    pub repository: Repository,
    pub limits: Limits,
    pub admission: Arc<Admission>,
    pub security: Security,
    /// Sends spans of requests to a collector, if there is one.
    #[cfg(feature = "otel")]
    pub traces: Option<Arc<Exporter>>,
    /// Whether clients may load and unload models.
    pub allows_changes: bool,
    /// Whether the server is about to end.
    is_ending: AtomicBool,
    /// Whether connections end after the requests that they have.
    is_draining: AtomicBool,
}

impl Shared {
    /// Admits a request to a model whose body has so many bytes.
    pub fn admit(&self, n_bytes: usize) -> Result<Ticket, Refusal> {
        self.admission.admit(n_bytes)
    }

    /// Admits a message of a stream, unless the server ends: a stream may go on for ever.
    pub fn admit_message(&self, n_bytes: usize) -> Result<Ticket, Refusal> {
        if self.is_draining() {
            let message = "the server is ending, and takes no more requests";
            return Err(Error::new(ErrorCode::Unavailable, message).into());
        }
        self.admit(n_bytes)
    }

    /// Returns whether requests are taken.
    pub fn is_ready(&self) -> bool {
        // Ordering: a flag, which orders no memory.
        !self.is_ending.load(Ordering::Relaxed) && self.repository.is_ready()
    }

    /// Returns whether connections end after the requests that they have.
    pub fn is_draining(&self) -> bool {
        // Ordering: a flag, which orders no memory.
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// The steps towards the end of a server, each of which is for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Requests are answered.
    Serving,
    /// Connections end after the requests that they have.
    Draining,
    /// Connections are closed as they are.
    Closing,
}

/// A builder of a [`Server`].
pub struct ServerBuilder {
    name: String,
    host: HostContext,
    repository: Repository,
    limits: Limits,
    security: Security,
    #[cfg(feature = "otel")]
    collector: Option<Collector>,
    /// Warnings that are told when the server starts.
    #[cfg(feature = "otel")]
    warnings: Vec<String>,
    #[cfg(feature = "otel")]
    warn: Warn,
    allows_changes: bool,
    n_threads: Option<usize>,
    listeners: Vec<TcpListener>,
}

/// A server that runs. Dropping it ends it at once, and with it what it does.
///
/// # Examples
///
/// ```
/// # use std::{path::Path, sync::Arc};
/// # use tfrt_host::{AnyAsyncValue, HostContext, RequestContext, kernel::KernelRegistry};
/// # use tfrt_tensor::{DType, Tensor};
/// use tfrt_serve::{Description, Place, Repository, Servable, Server, TensorInfo, VersionPolicy};
/// # struct NoFiles;
/// # impl tfrt_serve::Loader for NoFiles {
/// #     fn recognises(&self, _: &Path) -> bool { false }
/// #     fn load(&self, _: &Path) -> Result<Arc<dyn Servable>, String> { Err("no files".to_owned()) }
/// # }
///
/// /// A model that gives what it is given.
/// struct Echo(Description);
///
/// impl Servable for Echo {
///     fn description(&self) -> &Description {
///         &self.0
///     }
///
///     fn call(
///         &self,
///         _: &Arc<RequestContext>,
///         inputs: Vec<(String, Tensor)>,
///         _: Place,
///     ) -> Vec<AnyAsyncValue> {
///         inputs.into_iter().map(|(_, tensor)| AnyAsyncValue::new(tensor)).collect()
///     }
/// }
///
/// let x = TensorInfo { name: "x".to_owned(), dtype: DType::F32, dims: None };
/// let description = Description { platform: "echo".to_owned(), inputs: vec![x.clone()], outputs: vec![x] };
/// let repository = Repository::new(Arc::new(NoFiles), Vec::new(), VersionPolicy::default());
/// repository.add("echo", Arc::new(Echo(description)))?;
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let server = Server::builder(&host, repository).listen("127.0.0.1:0")?.start()?;
/// println!("http://{}/v2/models/echo", server.addresses()[0]);
/// server.stop(std::time::Duration::from_secs(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    addresses: Vec<SocketAddr>,
    threads: Threads,
}

/// Ends a server from elsewhere: a counted handle.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
}

impl Server {
    /// Returns a builder of a server for the models of a repository, whose calls run on the host's queue.
    pub fn builder(host: &HostContext, repository: Repository) -> ServerBuilder {
        ServerBuilder {
            name: "tfrt".to_owned(),
            host: host.clone(),
            repository,
            limits: Limits::default(),
            security: Security::default(),
            #[cfg(feature = "otel")]
            collector: None,
            #[cfg(feature = "otel")]
            warnings: Vec::new(),
            #[cfg(feature = "otel")]
            warn: Arc::new(|_| {}),
            allows_changes: false,
            n_threads: None,
            listeners: Vec::new(),
        }
    }

    /// Returns the addresses at which the server listens, in the order in which they were given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the models.
    pub fn repository(&self) -> &Repository {
        &self.shared.repository
    }

    /// Returns a handle that ends the server.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: self.shared.clone(),
            phase: self.phase.clone(),
        }
    }

    /// Takes no more requests, and waits for those that are there, for a time at most; then closes what is left. Returns
    /// whether none was.
    pub fn stop(mut self, patience: Duration) -> bool {
        self.stopper().drain();
        let is_idle = self.threads.wait_idle(patience);
        self.phase.send_replace(Phase::Closing);
        self.threads.join();
        #[cfg(feature = "otel")]
        if let Some(exporter) = &self.shared.traces {
            exporter.finish();
        }
        is_idle
    }
}

impl Stopper {
    /// Says from now on that the server is not ready, and goes on to answer.
    pub fn refuse(&self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        self.shared.repository.tell_change();
    }

    /// Takes no connections from now on, and lets those that are there end after the requests that they have.
    pub fn drain(&self) {
        self.refuse();
        self.shared.is_draining.store(true, Ordering::Relaxed);
        self.shared.repository.tell_change();
        self.phase.send_if_modified(|phase| {
            let is_new = *phase < Phase::Draining;
            *phase = (*phase).max(Phase::Draining);
            is_new
        });
    }
}

impl ServerBuilder {
    /// Listens at an address, such as `127.0.0.1:8000`; at a port that the system chooses if that is 0. All addresses
    /// speak all protocols, HTTP/1.1 and HTTP/2.
    ///
    /// # Errors
    ///
    /// Those of the system: the port is in use, or may not be had.
    pub fn listen(mut self, address: &str) -> io::Result<ServerBuilder> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        self.listeners.push(listener);
        Ok(self)
    }

    /// Sets the bounds on what clients may ask for.
    pub fn limits(mut self, limits: Limits) -> ServerBuilder {
        self.limits = limits;
        self
    }

    /// Encrypts all connections by certificates of files, which are read again when they change: TLS 1.3.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the file that can't be read, or is none of its kind.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, files: &TlsFiles) -> Result<ServerBuilder, Error> {
        self.security.set_tls(files)?;
        Ok(self)
    }

    /// Asks for a token with each request, `Authorization: Bearer TOKEN`, but for those about the server's health. Lines of
    /// the file are `TOKEN SCOPE..`, of the scopes `infer`, `metadata`, `repository` and `metrics`; it is read again when
    /// it changes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the file can't be read, or with the line that is none.
    pub fn tokens(mut self, file: &Path) -> Result<ServerBuilder, Error> {
        self.security.set_tokens(file)?;
        Ok(self)
    }

    /// Sends spans of requests to models to a collector, by OTLP over HTTP: `http://127.0.0.1:4318`. Without an address it is
    /// that of the environment, `OTEL_EXPORTER_OTLP_ENDPOINT`, and none if that names none. Service, headers, sampler and
    /// time are those of the environment, too, as OpenTelemetry has them. A collector that is slow or gone holds nothing
    /// up: spans are dropped, and counted in the metric `tfrt_spans_dropped_total`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an address that is none or asks for encryption. An environment that does so, or asks for another
    /// protocol, is a [warning](Self::on_warning), and no spans are sent.
    #[cfg(feature = "otel")]
    pub fn traces(mut self, endpoint: Option<&str>) -> Result<ServerBuilder, Error> {
        self.collector = Collector::new(endpoint, &mut self.warnings)?;
        Ok(self)
    }

    /// Sets the function that hears of what goes wrong beside requests: that spans can't be sent, once until they can be again.
    /// Default: nobody hears of it.
    #[cfg(feature = "otel")]
    pub fn on_warning(mut self, warn: impl Fn(&str) + Send + Sync + 'static) -> ServerBuilder {
        self.warn = Arc::new(warn);
        self
    }

    /// Sets the name that the server tells clients. Default: `tfrt`.
    pub fn name(mut self, name: &str) -> ServerBuilder {
        name.clone_into(&mut self.name);
        self
    }

    /// Lets clients load and unload models of the repository. Default: not.
    pub fn allow_changes(mut self, allows: bool) -> ServerBuilder {
        self.allows_changes = allows;
        self
    }

    /// Sets the number of threads that move bytes, at least one. Default: one for each processor.
    pub fn threads(mut self, n_threads: usize) -> ServerBuilder {
        self.n_threads = Some(n_threads.max(1));
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    ///
    /// Those of the system: there are no threads or file descriptors left.
    pub fn start(mut self) -> io::Result<Server> {
        self.security.trust_time = self.limits.trust_time;
        let addresses = self.listeners.iter().map(TcpListener::local_addr);
        let addresses = addresses.collect::<io::Result<_>>()?;
        #[cfg(feature = "otel")]
        let traces = match self.collector {
            Some(collector) => Some(collector.start(&self.name, self.warn.clone())?),
            None => None,
        };
        #[cfg(feature = "otel")]
        self.warnings.iter().for_each(|text| (self.warn)(text));
        let shared = Arc::new(Shared {
            #[cfg(feature = "otel")]
            traces,
            name: self.name,
            host: self.host,
            repository: self.repository,
            admission: Admission::new(&self.limits),
            limits: self.limits,
            security: self.security,
            allows_changes: self.allows_changes,
            is_ending: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
        });
        let n_threads = match self.n_threads {
            Some(n_threads) => n_threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let (phase, watched) = watch::channel(Phase::Serving);
        let threads = Threads::start(n_threads, self.listeners, &shared, &watched)?;
        Ok(Server {
            shared,
            phase,
            addresses,
            threads,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_draining.store(true, Ordering::Relaxed);
        self.phase.send_replace(Phase::Closing);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let addresses = &self.addresses;
        f.debug_struct("Server")
            .field("addresses", addresses)
            .finish_non_exhaustive()
    }
}

/// Returns when a time from now is, or a time that never comes.
fn after(patience: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(patience)
        .unwrap_or_else(|| now + Duration::from_secs(1 << 30))
}
