//! Probes of connections: how long a round trip from a task to another takes, and some bytes.
//!
//! Any task of a context can have any other measure: [`probe`]. Round trips are requests for the time, bytes a value that
//! its receiver drops, both on the connection that programs use. How far the receiver's clock is ahead follows from the
//! fastest round trip, in whose middle it is taken to have been read.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tfrt_async::{AsyncValue, ClusterTask, Error, Promise};
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};

use crate::context::DistributedContext;
use crate::ids::TaskHandle;
use crate::message::{Payload, Probed, Reply, Request};
use crate::transport::Bounds;

/// The name under which bytes of probes are sent.
pub(crate) const NAME: &str = "\0probe";

/// The most bytes that are sent at once.
pub const MAX_BYTES: u64 = 256 << 20;

/// The number of round trips that are measured.
const N_ROUND_TRIPS: usize = 21;
/// The number of times that the bytes are sent.
const N_SENDINGS: usize = 3;

/// Returns the time of this task's clock.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Has a task measure its connection to another: round trips, and so many bytes one way.
pub fn probe(
    context: &Arc<DistributedContext>,
    from: TaskHandle,
    to: &ClusterTask,
    n_bytes: u64,
    bounds: Bounds,
) -> AsyncValue<Reply> {
    if from == context.own_task() {
        return measure(context, to, n_bytes, bounds);
    }
    let request = Request::Probe {
        context: context.id(),
        to: to.clone(),
        n_bytes,
    };
    context.call(from, request, bounds)
}

/// Measures the connection of this task to another.
pub(crate) fn measure(
    context: &Arc<DistributedContext>,
    to: &ClusterTask,
    n_bytes: u64,
    bounds: Bounds,
) -> AsyncValue<Reply> {
    let begin = || {
        let to = context.handle_of(to)?;
        if n_bytes > MAX_BYTES {
            return Err(Error::invalid_argument(format!(
                "expected at most {MAX_BYTES} bytes of a probe, found {n_bytes}"
            )));
        }
        let len = usize::try_from(n_bytes).unwrap_or(usize::MAX);
        let buffer = HostBuffer::zeroed(context.host().allocator(), len, BUFFER_ALIGNMENT);
        let buffer = buffer.ok_or_else(|| {
            Error::resource_exhausted(format!("no memory for {n_bytes} bytes to be sent"))
        })?;
        Ok((to, Payload(vec![buffer])))
    };
    let (to, payload) = match begin() {
        Ok(begun) => begun,
        Err(error) => return AsyncValue::from_error(error),
    };
    let (promise, probed) = AsyncValue::pending();
    let measuring = Measuring {
        context: context.clone(),
        to,
        payload,
        bounds,
        round_trips: Vec::new(),
        sendings: Vec::new(),
        clock_offset_ns: 0,
        promise,
    };
    measuring.go_on();
    probed
}

/// A measurement that goes on with each answer.
struct Measuring {
    context: Arc<DistributedContext>,
    to: TaskHandle,
    payload: Payload,
    bounds: Bounds,
    round_trips: Vec<Duration>,
    sendings: Vec<Duration>,
    /// That of the fastest round trip.
    clock_offset_ns: i64,
    promise: Promise<Reply>,
}

impl Measuring {
    fn go_on(mut self) {
        let begin = Instant::now();
        if self.round_trips.len() < N_ROUND_TRIPS {
            let begin_ns = now_ns();
            let bounds = self.bounds.clone();
            let reply = self.context.call(self.to, Request::ReadClock, bounds);
            return reply.when_settled(move |reply| match reply.get() {
                Some(Ok(Reply::Clock(theirs))) => {
                    let took = begin.elapsed();
                    if self.round_trips.iter().all(|other| took < *other) {
                        let half = u64::try_from(took.as_nanos() / 2).unwrap_or(u64::MAX);
                        let own = begin_ns.saturating_add(half);
                        self.clock_offset_ns = theirs.wrapping_sub(own).cast_signed();
                    }
                    self.round_trips.push(took);
                    self.go_on();
                }
                Some(Err(error)) => self.promise.fail(error.clone()),
                _ => (self.promise).fail(Error::internal("expected the time of a task")),
            });
        }
        if self.sendings.len() < N_SENDINGS {
            let (payload, bounds) = (self.payload.clone(), self.bounds.clone());
            let sent = self.context.send(self.to, NAME, payload, bounds);
            return sent.when_settled(move |sent| match sent.error() {
                Some(error) => self.promise.fail(error.clone()),
                None => {
                    self.sendings.push(begin.elapsed());
                    self.go_on();
                }
            });
        }
        self.round_trips.sort_unstable();
        self.promise.resolve(Reply::Probed(Probed {
            round_trip: self.round_trips[N_ROUND_TRIPS / 2],
            sending: self.sendings.into_iter().min().unwrap_or_default(),
            clock_offset_ns: self.clock_offset_ns,
        }));
    }
}
