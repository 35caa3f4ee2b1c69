//! [`Threads`]: the threads that move bytes, and which connection each has.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use super::{Phase, Shared, after, connection};

/// How long the listener rests when the system gives it no connection, for lack of file descriptors.
const REST: Duration = Duration::from_millis(20);

/// The threads, beside each of those that move bytes, that unpack bodies and load models. More of these wait.
const MAX_BLOCKING_THREADS: usize = 8;

/// The threads of a server, which end when the server closes.
pub(super) struct Threads {
    threads: Vec<JoinHandle<()>>,
    connections: Arc<Connections>,
}

/// The connections that are open, counted.
#[derive(Default)]
pub(super) struct Connections {
    n_open: Mutex<usize>,
    changed: Condvar,
}

/// A connection's place among those that are open.
pub(super) struct Open(Arc<Connections>);

impl Connections {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.n_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, unless there are `max`.
    fn open(self: &Arc<Self>, max: usize) -> Option<Open> {
        let mut n_open = self.lock();
        if *n_open >= max {
            return None;
        }
        *n_open += 1;
        Some(Open(self.clone()))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.changed.notify_all();
    }
}

impl Threads {
    /// Starts `n_threads`, of which the first accepts connections, too.
    pub fn start(
        n_threads: usize,
        listeners: Vec<TcpListener>,
        shared: &Arc<Shared>,
        phase: &watch::Receiver<Phase>,
    ) -> io::Result<Threads> {
        let connections = Arc::new(Connections::default());
        let mut threads = Threads {
            threads: Vec::new(),
            connections: connections.clone(),
        };
        let mut handles = Vec::new();
        for index in 0..n_threads {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(MAX_BLOCKING_THREADS)
                .build()?;
            handles.push(runtime.handle().clone());
            let mut phase = phase.clone();
            let name = format!("tfrt-serve-{index}");
            let run = move || {
                runtime.block_on(async {
                    // An error says that the server is gone.
                    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
                });
                // Connections and requests that are left are dropped, which cancels their calls.
                runtime.shutdown_background();
            };
            threads
                .threads
                .push(std::thread::Builder::new().name(name).spawn(run)?);
        }
        let next = Arc::new(AtomicUsize::new(0));
        for listener in listeners {
            let accepting = Accepting {
                handles: handles.clone(),
                next: next.clone(),
                shared: shared.clone(),
                phase: phase.clone(),
                connections: connections.clone(),
            };
            handles[0].spawn(accepting.run(listener));
        }
        Ok(threads)
    }

    /// Waits until no connection is open, for a time at most. Returns whether that is so.
    pub fn wait_idle(&self, patience: Duration) -> bool {
        let until = after(patience);
        let mut n_open = self.connections.lock();
        while *n_open > 0 {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return false;
            };
            let waited = self.connections.changed.wait_timeout(n_open, left);
            n_open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits for the threads, which have been told to end.
    pub fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// A listener's work.
struct Accepting {
    handles: Vec<Handle>,
    next: Arc<AtomicUsize>,
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
    connections: Arc<Connections>,
}

impl Accepting {
    async fn run(mut self, listener: TcpListener) {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
            return;
        };
        loop {
            let mut phase = self.phase.clone();
            let ends = async move {
                let _ = phase.wait_for(|phase| *phase > Phase::Serving).await;
            };
            match connection::first(ends, listener.accept()).await {
                None => return,
                Some(Ok((stream, _))) => self.hand_over(stream),
                Some(Err(_)) => tokio::time::sleep(REST).await,
            }
        }
    }

    /// Gives a connection to the next thread.
    fn hand_over(&mut self, stream: tokio::net::TcpStream) {
        // One connection too many is closed at once, which its client hears as a reset.
        let Some(open) = self.connections.open(self.shared.limits.max_connections) else {
            return;
        };
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len();
        let (shared, phase) = (self.shared.clone(), self.phase.clone());
        // Small answers are sent at once. If that can't be set they are not.
        let _ = stream.set_nodelay(true);
        let Ok(stream) = stream.into_std() else {
            return;
        };
        self.handles[index].spawn(async move {
            let _open = open;
            if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                connection::serve(stream, shared, phase).await;
            }
        });
    }
}
