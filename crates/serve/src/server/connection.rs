//! A connection, from the first byte to the last: HTTP/1.1, or HTTP/2 where it begins as that does.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::unread::Unread;
use super::{Phase, Shared};
use crate::http::{Exchange, answer};
use crate::traces::Trace;

/// Serves a connection to its end, encrypted if the server has certificates.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>, phase: watch::Receiver<Phase>) {
    let socket = Arc::new(stream);
    let unread = Arc::new(Unread::new(&shared.admission));
    let plain = Socket {
        stream: socket.clone(),
        unread: unread.clone(),
    };
    #[cfg(feature = "tls")]
    if let Some(config) = shared.security.tls() {
        let agreed = tokio_rustls::TlsAcceptor::from(config).accept(plain);
        let agreed = tokio::time::timeout(shared.limits.handshake_time, agreed).await;
        // Whoever can't agree has heard why, as far as TLS has words for it.
        if let Ok(Ok(encrypted)) = agreed {
            speak(encrypted, socket, unread, shared, phase).await;
        }
        return;
    }
    speak(plain, socket, unread, shared, phase).await;
}

/// Speaks HTTP on a connection, to its end. `socket` is what the connection lies on.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    socket: Arc<TcpStream>,
    unread: Arc<Unread>,
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
) {
    let limits = &shared.limits;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_time)
        .max_buf_size(limits.max_head_bytes.max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.max_streams)
        .max_header_list_size(u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .keep_alive_interval(limits.idle_time)
        .keep_alive_timeout(limits.idle_time);
    let was_heard = AtomicBool::new(false);
    let service = service_fn(|request| {
        // Ordering: a flag, which orders no memory.
        was_heard.store(true, Ordering::Relaxed);
        let exchange = Exchange {
            shared: shared.clone(),
            socket: socket.clone(),
            began: Instant::now(),
            trace: Trace::none(),
        };
        let unread = unread.clone();
        async move {
            let answered: Result<_, Infallible> = answer(exchange, request).await;
            answered.map(|response| response.map(|payload| unread.watch(payload)))
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let drains = async {
        let mut phase = phase;
        let _ = phase.wait_for(|phase| *phase > Phase::Serving).await;
    };
    // Until it is known which protocol a connection speaks, no other timer runs.
    let unheard = async {
        tokio::time::sleep(limits.idle_time).await;
        if was_heard.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    // Whatever ends a connection, a client or its mistakes, is no matter of the server.
    let served = async {
        let ended = async {
            let _ = connection.as_mut().await;
        };
        // The end of the server is looked at first, so that an answer that follows it says that the connection ends.
        let drained = first(ended, drains);
        if let Some(Some(())) = first(unheard, drained).await {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    };
    first(unread.stalled(limits), served).await;
}

/// Waits for the first of two: returns the output of `work`, or `None` if `end` has come before.
pub(crate) async fn first<T>(
    end: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        end.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// A socket that requests hold, too, to ask whether the client is still there.
struct Socket {
    stream: Arc<TcpStream>,
    /// Told of what is written.
    unread: Arc<Unread>,
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.stream.poll_read_ready(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(ready) => ready?,
            }
            // A read that leaves room has taken all that there was: the socket counts as empty, so that nobody asks the
            // system again before it says so. An event that comes after the read began is not forgotten.
            let (room, mut n_read) = (buffer.remaining(), 0);
            let asked = self.stream.try_io(Interest::READABLE, || {
                n_read = self.stream.try_read_buf(buffer)?;
                match (1..room).contains(&n_read) {
                    true => Err(io::ErrorKind::WouldBlock.into()),
                    false => Ok(()),
                }
            });
            match asked {
                Err(error) if n_read == 0 && error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                Err(_) if n_read == 0 => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl Socket {
    /// Writes once the socket takes something.
    fn poll_with(
        &self,
        context: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.stream.poll_write_ready(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(ready) => ready?,
            }
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.unread.sent(*written.as_ref().unwrap_or(&0));
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A stream that others hold, too, is told to end what it sends.
        let ended = rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Write);
        Poll::Ready(ended.map_err(io::Error::from))
    }
}
