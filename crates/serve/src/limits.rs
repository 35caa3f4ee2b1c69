//! [`Limits`]: the bounds on connections and requests.

use std::time::Duration;

/// The bounds on what clients may ask for. What exceeds one is refused with an error that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body of a request. Default: 64 MiB.
    pub max_request_bytes: usize,
    /// Bytes of the head of a request. Default: 32 KiB.
    pub max_head_bytes: usize,
    /// Requests to models that are there at once, in all. Default: 1024.
    pub max_in_flight: usize,
    /// Bytes of the bodies of these, in all. Default: 1 GiB.
    pub max_in_flight_bytes: usize,
    /// Bytes that the call of one request may hold at once, beside its inputs. Default: what the runtime allows.
    pub max_call_bytes: Option<usize>,
    /// Connections that are open at once. Default: 4096.
    pub max_connections: usize,
    /// Requests at once on one connection of HTTP/2. Default: 128.
    pub max_streams: u32,
    /// The time in which the head of a request must come to its end, from the beginning of a connection or the end of the
    /// request before. Of HTTP/2, that for the first request, and after which silent clients are asked whether they are
    /// there. Default: 75 s.
    pub idle_time: Duration,
    /// The time in which a connection that is encrypted must be agreed on. Default: 5 s.
    pub handshake_time: Duration,
    /// The time that a body may take, beside a second for each [`min_body_rate`](Self::min_body_rate) bytes of it.
    /// Default: 5 s.
    pub body_time: Duration,
    /// Bytes of a body that must come in a second, or of answers that must be taken. Default: 16 KiB.
    pub min_body_rate: usize,
    /// The time within which a client must take so many bytes of the answers that wait for it. Default: 30 s.
    pub answer_time: Duration,
    /// The time that a request may take, unless it asks for less. Default: 30 s.
    pub deadline: Duration,
    /// The time for which files of certificates and tokens are taken for what they were, before they are looked at again.
    /// Default: 1 s.
    pub trust_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_request_bytes: 64 << 20,
            max_head_bytes: 32 << 10,
            max_in_flight: 1024,
            max_in_flight_bytes: 1 << 30,
            max_call_bytes: None,
            max_connections: 4096,
            max_streams: 128,
            idle_time: Duration::from_secs(75),
            handshake_time: Duration::from_secs(5),
            body_time: Duration::from_secs(5),
            min_body_rate: 16 << 10,
            answer_time: Duration::from_secs(30),
            deadline: Duration::from_secs(30),
            trust_time: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// Returns the time that a body of so many bytes may take.
    pub(crate) fn time_of_body(&self, n_bytes: usize) -> Duration {
        let seconds = n_bytes / self.min_body_rate.max(1);
        self.body_time + Duration::from_secs(seconds as u64)
    }
}
