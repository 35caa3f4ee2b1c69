//! [`Admission`]: how many requests to models, and how many bytes of them, are there at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tfrt_host::{Error, ErrorCode};

use crate::limits::Limits;
use crate::refusal::Refusal;

/// The requests that are admitted, counted. One for a server.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    n_requests: AtomicUsize,
    n_bytes: AtomicUsize,
    n_rejected: AtomicU64,
}

/// A request's place among those that are admitted, which it gives back when it ends.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    n_bytes: usize,
}

impl Admission {
    /// Admits a request whose body has so many bytes, or refuses it at once.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there are too many requests or bytes.
    pub fn admit(self: &Arc<Self>, n_bytes: usize, limits: &Limits) -> Result<Ticket, Refusal> {
        // Ordering: a count, which orders no memory.
        let n_requests = self.n_requests.fetch_add(1, Ordering::Relaxed) + 1;
        let n_bytes_in_all = self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes;
        let ticket = Ticket {
            admission: self.clone(),
            n_bytes,
        };
        if n_requests > limits.max_in_flight {
            return Err(self.over(format!("{} requests", limits.max_in_flight)));
        }
        // A request that is alone is held to the limit on its own bytes only.
        if n_requests > 1 && n_bytes_in_all > limits.max_in_flight_bytes {
            return Err(self.over(format!("{} bytes of requests", limits.max_in_flight_bytes)));
        }
        Ok(ticket)
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

    /// Returns the number of requests that were refused.
    pub fn n_rejected(&self) -> u64 {
        self.n_rejected.load(Ordering::Relaxed)
    }
}

impl Ticket {
    /// Admits more bytes of the request.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there are too many.
    pub fn grow(&mut self, n_bytes: usize, limits: &Limits) -> Result<(), Refusal> {
        let admission = &self.admission;
        let n_in_all = admission.n_bytes.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes;
        self.n_bytes += n_bytes;
        match admission.n_in_flight() > 1 && n_in_all > limits.max_in_flight_bytes {
            true => {
                Err(admission.over(format!("{} bytes of requests", limits.max_in_flight_bytes)))
            }
            false => Ok(()),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.admission.n_requests.fetch_sub(1, Ordering::Relaxed);
        self.admission
            .n_bytes
            .fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_bytes_over_the_limits_are_refused_until_others_end() {
        let admission = Arc::new(Admission::default());
        let limits = Limits {
            max_in_flight: 2,
            max_in_flight_bytes: 100,
            ..Limits::default()
        };
        let first = admission.admit(200, &limits).unwrap();
        let error = admission.admit(1, &limits).unwrap_err();
        assert!(error.message().contains("100 bytes"), "{error:?}");
        drop(first);
        let mut grows = admission.admit(0, &limits).unwrap();
        grows.grow(200, &limits).unwrap();
        let other = admission.admit(0, &limits);
        assert!(other.is_err(), "{other:?}");
        drop((grows, other));
        let two = [10, 10].map(|n_bytes| admission.admit(n_bytes, &limits).unwrap());
        let error = admission.admit(0, &limits).unwrap_err();
        assert_eq!(error.status(), 503);
        assert!(error.message().contains("2 requests"), "{error:?}");
        drop(two);
        assert_eq!((admission.n_in_flight(), admission.n_rejected()), (0, 3));
    }
}
