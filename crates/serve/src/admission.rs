//! [`Admission`]: how many requests to models, and how many bytes of them, are there at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tfrt_host::{Error, ErrorCode};

use crate::limits::Limits;
use crate::refusal::Refusal;

/// The requests that are admitted, counted. One for a server.
#[derive(Debug)]
pub(crate) struct Admission {
    max_requests: usize,
    max_bytes: usize,
    n_requests: AtomicUsize,
    n_bytes: AtomicUsize,
    n_rejected: AtomicU64,
}

/// A place among the requests that are admitted, which is given back when the ticket is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    /// One for a request, none for bytes alone.
    n_requests: usize,
    /// The bytes that are counted for it. One task at a time changes them.
    n_bytes: AtomicUsize,
}

impl Admission {
    /// Makes the counts of a server with these limits.
    pub fn new(limits: &Limits) -> Arc<Admission> {
        Arc::new(Admission {
            max_requests: limits.max_in_flight,
            max_bytes: limits.max_in_flight_bytes,
            n_requests: AtomicUsize::new(0),
            n_bytes: AtomicUsize::new(0),
            n_rejected: AtomicU64::new(0),
        })
    }

    /// Admits a request whose body has so many bytes, or refuses it at once.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there are too many requests or bytes.
    pub fn admit(self: &Arc<Self>, n_bytes: usize) -> Result<Ticket, Refusal> {
        // Ordering: a count, which orders no memory.
        let n_requests = self.n_requests.fetch_add(1, Ordering::Relaxed) + 1;
        let ticket = Ticket {
            admission: self.clone(),
            n_requests: 1,
            n_bytes: AtomicUsize::new(0),
        };
        if n_requests > self.max_requests {
            return Err(self.over(format!("{} requests", self.max_requests)));
        }
        ticket.hold(n_bytes)?;
        Ok(ticket)
    }

    /// Returns a ticket for bytes alone, of a stream or an answer, of which there are none yet.
    pub fn stream(self: &Arc<Self>) -> Ticket {
        Ticket {
            admission: self.clone(),
            n_requests: 0,
            n_bytes: AtomicUsize::new(0),
        }
    }

    fn over(&self, limit: String) -> Refusal {
        self.n_rejected.fetch_add(1, Ordering::Relaxed);
        let message = format!("the server is at its limit of {limit} at once: try again later");
        Error::new(ErrorCode::Unavailable, message).into()
    }

    /// Returns the number of requests that are there now.
    pub fn n_in_flight(&self) -> usize {
        self.n_requests.load(Ordering::Relaxed)
    }

    /// Returns the bytes that are counted for them.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were refused.
    pub fn n_rejected(&self) -> u64 {
        self.n_rejected.load(Ordering::Relaxed)
    }
}

impl Ticket {
    /// Counts so many bytes in all, if fewer were counted before.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there are too many of all requests together. One that has all of them is held to the limit on its
    /// own bytes only.
    pub fn hold(&self, n_bytes: usize) -> Result<(), Refusal> {
        let before = self.n_bytes.load(Ordering::Relaxed);
        if n_bytes <= before {
            return Ok(());
        }
        self.n_bytes.store(n_bytes, Ordering::Relaxed);
        let (admission, more) = (&self.admission, n_bytes - before);
        let in_all = admission.n_bytes.fetch_add(more, Ordering::Relaxed) + more;
        match in_all > n_bytes && in_all > admission.max_bytes {
            true => Err(admission.over(format!("{} bytes of requests", admission.max_bytes))),
            false => Ok(()),
        }
    }

    /// Counts so many more bytes, of something that is there already.
    pub fn count(&self, n_bytes: usize) {
        self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        self.admission.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
    }

    /// Counts no bytes any more.
    pub fn let_go(&self) {
        let n_bytes = self.n_bytes.swap(0, Ordering::Relaxed);
        self.admission.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.let_go();
        let n_requests = self.n_requests;
        self.admission
            .n_requests
            .fetch_sub(n_requests, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission() -> Arc<Admission> {
        Admission::new(&Limits {
            max_in_flight: 2,
            max_in_flight_bytes: 100,
            ..Limits::default()
        })
    }

    #[test]
    fn requests_and_bytes_over_the_limits_are_refused_until_others_end() {
        let admission = admission();
        let first = admission.admit(200).unwrap();
        let error = admission.admit(1).unwrap_err();
        assert!(error.message().contains("100 bytes"), "{error:?}");
        drop(first);
        let two = [10, 10].map(|n_bytes| admission.admit(n_bytes).unwrap());
        let error = admission.admit(0).unwrap_err();
        assert_eq!(error.status(), 503);
        assert!(error.message().contains("2 requests"), "{error:?}");
        drop(two);
        assert_eq!((admission.n_in_flight(), admission.n_rejected()), (0, 2));
        assert_eq!(admission.n_bytes(), 0);
    }

    #[test]
    fn bytes_are_counted_once_as_they_become_more() {
        let admission = admission();
        let grows = admission.admit(10).unwrap();
        for n_bytes in [60, 20, 60] {
            grows.hold(n_bytes).unwrap();
            assert_eq!(admission.n_bytes(), 60);
        }
        let stream = admission.stream();
        stream.hold(40).unwrap();
        assert!(stream.hold(41).is_err());
        assert!(admission.admit(1).is_err());
        stream.let_go();
        let other = admission.admit(40).unwrap();
        drop((grows, other, stream));
        assert_eq!((admission.n_in_flight(), admission.n_bytes()), (0, 0));
    }
}
