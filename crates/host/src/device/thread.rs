//! Shared parts of devices: [`DeviceThread`], which does their work in order, and [`ByteBudget`], which counts their
//! memory. A device takes them, or has its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tfrt_async::{AnyAsyncValue, Chain, Error, Promise, when_all};

use crate::guarded;

/// A thread that runs a device's jobs one after the other. Clones are one thread, which ends when all of them are
/// dropped and all jobs are done.
///
/// # Examples
///
/// ```
/// use tfrt_host::device::DeviceThread;
/// use tfrt_host::{AsyncValue, Error};
///
/// let thread = DeviceThread::spawn("GPU:0")?;
/// let (done, chain) = AsyncValue::pending();
/// let (told, is_told) = std::sync::mpsc::channel();
/// thread.enqueue(&[], done, move || {
///     told.send("copied").map_err(|_| Error::internal("nobody listens"))
/// });
/// assert_eq!(is_told.recv(), Ok("copied"));
/// # drop(chain);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceThread(Sender<Job>);

/// A job: the work, and the promise of its end.
struct Job {
    work: Box<dyn FnOnce() -> Result<(), Error> + Send>,
    done: Promise<Chain>,
}

impl DeviceThread {
    /// Starts a thread of this name.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the system has none.
    pub fn spawn(name: &str) -> Result<DeviceThread, Error> {
        let (jobs, receiver) = channel();
        let builder = thread::Builder::new().name(name.to_owned());
        match builder.spawn(move || work(receiver)) {
            Ok(_) => Ok(DeviceThread(jobs)),
            Err(error) => Err(Error::resource_exhausted(format!(
                "there is no thread for the device {name}: {error}"
            ))),
        }
    }

    /// Does `work` when all of `after` are there and what was asked for before is done, then settles `done`: what the work
    /// has taken is dropped before that. If one of `after` has failed, nothing is done, and `done` fails with its error;
    /// so it does with the work's own, or if the work panics.
    pub fn enqueue(
        &self,
        after: &[AnyAsyncValue],
        done: Promise<Chain>,
        work: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) {
        let (jobs, work) = (self.0.clone(), Box::new(work));
        when_all(after).when_settled(move |all| match all.error() {
            Some(error) => done.complete(Err(error.clone())),
            None => {
                // The thread ends when nobody can send; a job that nobody does fails its promise.
                let _ended = jobs.send(Job { work, done });
            }
        });
    }
}

fn work(jobs: Receiver<Job>) {
    for Job { work, done } in jobs {
        let worked = guarded(work).and_then(|worked| worked);
        done.complete(worked.map(|()| Chain));
    }
}

/// A budget of a device's memory: the bytes that are held, and the most that may be. Clones count together.
///
/// # Examples
///
/// ```
/// use tfrt_host::device::ByteBudget;
///
/// let budget = ByteBudget::new(100);
/// let held = budget.take(80, "GPU:0")?;
/// assert_eq!(budget.held(), 80);
/// let error = budget.take(21, "GPU:0").unwrap_err();
/// assert_eq!(error.message(), "there are no 21 bytes on GPU:0");
/// drop(held);
/// assert_eq!(budget.held(), 0);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ByteBudget {
    most: usize,
    held: Arc<AtomicUsize>,
}

/// Bytes that a [`ByteBudget`] counts as held until this is dropped.
#[derive(Debug)]
pub struct ByteReservation {
    len: usize,
    held: Arc<AtomicUsize>,
}

impl ByteBudget {
    /// Makes a budget of so many bytes, none of which is held.
    pub fn new(most: usize) -> ByteBudget {
        ByteBudget {
            most,
            held: Arc::default(),
        }
    }

    /// Returns how many bytes are held.
    pub fn held(&self) -> usize {
        // Ordering: a statistic.
        self.held.load(Ordering::Relaxed)
    }

    /// Holds so many bytes more.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted`, with the name of the device, if there are not as many.
    pub fn take(&self, len_bytes: usize, device: &str) -> Result<ByteReservation, Error> {
        let add = |held: usize| {
            let sum = held.checked_add(len_bytes)?;
            (sum <= self.most).then_some(sum)
        };
        // Ordering: a statistic; the memory itself is somebody else's.
        let taken = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.map_err(|_| {
            Error::resource_exhausted(format!("there are no {len_bytes} bytes on {device}"))
        })?;
        Ok(ByteReservation {
            len: len_bytes,
            held: self.held.clone(),
        })
    }
}

impl ByteReservation {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether this holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        // Ordering: a statistic.
        self.held.fetch_sub(self.len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tfrt_async::AsyncValue;

    use super::*;

    /// Waits for a chain; returns the message of its error.
    fn settled(chain: AsyncValue<Chain>) -> Option<String> {
        let (sender, receiver) = mpsc::channel();
        chain.when_settled(move |chain| {
            let message = chain.error().map(|error| error.message().to_owned());
            let _waits = sender.send(message);
        });
        receiver.recv().unwrap()
    }

    #[test]
    fn work_is_done_in_order_and_failures_are_the_works_own() {
        let thread = DeviceThread::spawn("TEST:0").unwrap();
        let (sender, receiver) = mpsc::channel();
        let ask = |number: u32, after: &[AnyAsyncValue], result: fn() -> Result<(), Error>| {
            let (sender, (done, chain)) = (sender.clone(), AsyncValue::pending());
            thread.enqueue(after, done, move || {
                sender.send(number).unwrap();
                result()
            });
            chain
        };
        let (first, gate) = AsyncValue::<Chain>::pending();
        let late = ask(3, &[gate.as_any().clone()], || Ok(()));
        let good = ask(1, &[], || Ok(()));
        let bad = ask(2, &[], || Err(Error::internal("the device is lost")));
        assert_eq!(settled(good), None);
        let lost = Some("the device is lost".to_owned());
        assert_eq!(settled(bad.clone()), lost);
        first.resolve(Chain);
        assert_eq!(settled(late), None);
        let after = ask(4, &[bad.as_any().clone()], || Ok(()));
        assert_eq!(settled(after), lost);
        let panics = ask(5, &[], || panic!("a mistake"));
        assert!(settled(panics).unwrap().contains("a mistake"));
        let all: Vec<u32> = receiver.try_iter().collect();
        assert_eq!(all, [1, 2, 3, 5]);
    }
}
