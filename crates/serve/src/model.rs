//! [`Loaded`]: a version of a model that is ready for requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::servable::{Description, Place, Servable};
use crate::statistics::Statistics;

/// A call that takes less time than this is run by the thread that has read the request.
const SMALL: Duration = Duration::from_micros(100);

/// Inputs of more bytes than these make a call a large one, whatever others took.
const SMALL_INPUT_BYTES: usize = 256 << 10;

/// A version of a model, loaded. Requests hold it, so that it lives until the last of them ends.
pub(crate) struct Loaded {
    pub name: Arc<str>,
    pub version: u64,
    pub servable: Arc<dyn Servable>,
    pub statistics: Statistics,
    /// The nanoseconds that a call takes, of late: the most, forgotten by an eighth with each call.
    recent_ns: AtomicU64,
}

impl Loaded {
    pub fn new(name: Arc<str>, version: u64, servable: Arc<dyn Servable>) -> Loaded {
        let unknown = SMALL * 2;
        Loaded {
            name,
            version,
            servable,
            statistics: Statistics::default(),
            recent_ns: AtomicU64::new(unknown.as_nanos() as u64),
        }
    }

    pub fn description(&self) -> &Description {
        self.servable.description()
    }

    /// Returns the thread on which a call with inputs of so many bytes begins.
    pub fn place(&self, n_bytes: usize) -> Place {
        // Ordering: an estimate.
        let recent = Duration::from_nanos(self.recent_ns.load(Ordering::Relaxed));
        match recent < SMALL && n_bytes <= SMALL_INPUT_BYTES {
            true => Place::Here,
            false => Place::Queue,
        }
    }

    /// Notes the time that a call took.
    pub fn took(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let before = self.recent_ns.load(Ordering::Relaxed);
        self.recent_ns
            .store(ns.max(before - before / 8), Ordering::Relaxed);
    }
}
