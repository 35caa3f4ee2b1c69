//! [`Loaded`]: a version of a model that is ready for requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tfrt_tensor::Tensor;

use crate::batch::{Batcher, Batching};
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
    /// Joins requests, if they are to be joined.
    pub batcher: Option<Batcher>,
    /// The nanoseconds that a call takes, of late: the most, forgotten by an eighth with each call.
    recent_ns: AtomicU64,
}

impl Loaded {
    pub fn new(
        name: Arc<str>,
        version: u64,
        servable: Arc<dyn Servable>,
        batcher: Option<Batcher>,
    ) -> Loaded {
        let unknown = SMALL * 2;
        Loaded {
            name,
            version,
            servable,
            statistics: Statistics::default(),
            batcher,
            recent_ns: AtomicU64::new(unknown.as_nanos() as u64),
        }
    }

    pub fn description(&self) -> &Description {
        self.servable.description()
    }

    /// Returns how requests are joined, if they are.
    pub fn batching(&self) -> Option<&Batching> {
        self.batcher.as_ref().map(|batcher| &batcher.batching)
    }

    /// Returns the thread on which a call with these inputs begins.
    pub fn place(&self, inputs: &[(String, Tensor)]) -> Place {
        let n_bytes: usize = inputs.iter().map(|(_, tensor)| bytes_of(tensor)).sum();
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

fn bytes_of(tensor: &Tensor) -> usize {
    match tensor {
        Tensor::String(strings) => strings
            .strings()
            .iter()
            .map(|string| string.len() + 24)
            .sum(),
        other => other.metadata().len_bytes().unwrap_or(usize::MAX / 1024),
    }
}
