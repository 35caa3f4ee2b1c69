//! [`Statistics`]: what happened to the requests of one version of a model, as counts and times.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A number of events, and the time that they took together.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    count: AtomicU64,
    ns: AtomicU64,
}

impl Timed {
    fn add(&self, time: Duration) {
        // Ordering: statistics.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(ns(time), Ordering::Relaxed);
    }

    /// Returns the number of events.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the nanoseconds that they took.
    pub fn ns(&self) -> u64 {
        self.ns.load(Ordering::Relaxed)
    }
}

/// Returns a time in nanoseconds.
pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The upper bounds of the classes of a histogram, in microseconds; one class more has what is above.
pub(crate) const BOUNDS_US: [u64; 15] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 10_000_000,
];

/// How often events took how long.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    classes: [AtomicU64; BOUNDS_US.len() + 1],
    ns: AtomicU64,
}

impl Histogram {
    fn add(&self, time: Duration) {
        let us = time.as_micros();
        let class = BOUNDS_US.partition_point(|bound| u128::from(*bound) < us);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(ns(time), Ordering::Relaxed);
    }

    /// Returns the counts by class, and the nanoseconds in all.
    pub fn read(&self) -> ([u64; BOUNDS_US.len() + 1], u64) {
        let mut counts = [0; BOUNDS_US.len() + 1];
        for (count, class) in counts.iter_mut().zip(&self.classes) {
            *count = class.load(Ordering::Relaxed);
        }
        (counts, self.ns.load(Ordering::Relaxed))
    }
}

/// The batches of one number of rows: how many there were, and the times of them all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchTimes {
    pub count: u64,
    /// Joining the inputs of requests.
    pub input: Duration,
    pub infer: Duration,
    /// Splitting the outputs.
    pub output: Duration,
}

/// The counts of one version of a model, from when it was loaded.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub success: Timed,
    pub fail: Timed,
    /// Waiting for the call to begin.
    pub queue: Timed,
    /// Making tensors of the request.
    pub compute_input: Timed,
    pub compute_infer: Timed,
    /// Writing the answer.
    pub compute_output: Timed,
    pub duration: Histogram,
    /// Requests that ended because the client had gone.
    pub cancelled: AtomicU64,
    /// Requests that ended at their deadline.
    pub expired: AtomicU64,
    /// Rows of requests that succeeded: the first extents of their batches.
    pub n_rows: AtomicU64,
    /// How long requests waited for the call to begin.
    pub waits: Histogram,
    /// Calls of batches that succeeded, by their rows, of which there are as many as a batch may have.
    batches: Mutex<BTreeMap<usize, BatchTimes>>,
    /// Batches whose call failed, so that each of their requests was called by itself.
    pub n_split: AtomicU64,
    /// Calls of the model that succeeded.
    pub n_executions: AtomicU64,
    /// When the last request began, in milliseconds since 1970.
    pub last_ms: AtomicU64,
}

/// The times of one request that succeeded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub input: Duration,
    pub queue: Duration,
    pub infer: Duration,
    pub output: Duration,
}

impl Statistics {
    /// Counts a request that succeeded, of so many rows.
    pub fn succeed(&self, times: Times, n_rows: usize) {
        let in_all = times.input + times.queue + times.infer + times.output;
        self.success.add(in_all);
        self.duration.add(in_all);
        self.queue.add(times.queue);
        self.waits.add(times.queue);
        self.compute_input.add(times.input);
        self.compute_infer.add(times.infer);
        self.compute_output.add(times.output);
        self.n_rows.fetch_add(n_rows as u64, Ordering::Relaxed);
        self.touch();
    }

    /// Counts a call of the model that succeeded.
    pub fn count_execution(&self) {
        self.n_executions.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a batch of so many rows, whose call succeeded, with the times of joining, of the call, and of splitting.
    pub fn count_batch(&self, n_rows: usize, [input, infer, output]: [Duration; 3]) {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let times = batches.entry(n_rows).or_default();
        times.count += 1;
        times.input += input;
        times.infer += infer;
        times.output += output;
    }

    /// Counts a batch that was given up, so that each of its requests is called by itself.
    pub fn count_split(&self) {
        self.n_split.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the batches by their rows.
    pub fn batches(&self) -> BTreeMap<usize, BatchTimes> {
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.clone()
    }

    /// Counts a request that failed after a time.
    pub fn fail(&self, time: Duration) {
        self.fail.add(time);
        self.duration.add(time);
        self.touch();
    }

    fn touch(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = now.map_or(0, |time| {
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
        });
        self.last_ms.store(ms, Ordering::Relaxed);
    }
}
