//! [`unless_gone`]: waits for something while a client does.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tfrt_host::Error;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::refusal::Refusal;

/// How often a connection is looked at while a call runs.
const PERIOD: Duration = Duration::from_millis(5);

/// Waits for `work`, and drops it when the client closes its end of the connection. A client that sends more while it
/// waits is seen to go, too; one that closes only the half that it writes to is taken for gone.
///
/// # Errors
///
/// `Cancelled` if the client has gone.
pub(crate) async fn unless_gone<T>(
    socket: &TcpStream,
    work: impl Future<Output = T>,
) -> Result<T, Refusal> {
    let mut work = pin!(work);
    // Mostly there is nothing to wait for.
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return Ok(done);
    }
    loop {
        let mut period = pin!(sleep(PERIOD));
        let woken = poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            period.as_mut().poll(context).map(|()| None)
        });
        if let Some(done) = woken.await {
            return Ok(done);
        }
        if is_gone(socket).await {
            return Err(Error::cancelled("the client has gone").into());
        }
    }
}

async fn is_gone(socket: &TcpStream) -> bool {
    let mut ready = pin!(socket.ready(Interest::READABLE));
    let now = poll_fn(|context| Poll::Ready(ready.as_mut().poll(context))).await;
    match now {
        Poll::Pending => false,
        Poll::Ready(Ok(ready)) => ready.is_read_closed(),
        Poll::Ready(Err(_)) => true,
    }
}
