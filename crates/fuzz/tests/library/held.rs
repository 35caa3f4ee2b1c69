//! The bytes that the process holds, as its allocator counts them.

use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts bytes that were taken, and bytes that were given back.
pub fn count(taken: usize, given_back: usize) {
    // Ordering: statistics.
    let live = LIVE.fetch_add(taken, Ordering::Relaxed) + taken;
    PEAK.fetch_max(live, Ordering::Relaxed);
    LIVE.fetch_sub(given_back, Ordering::Relaxed);
}

/// Returns the bytes that are held now.
pub fn now() -> usize {
    // Ordering: a statistic.
    LIVE.load(Ordering::Relaxed)
}

/// Does some work, and returns the most bytes that are held meanwhile beyond those held before.
pub fn at_most(work: impl FnOnce()) -> usize {
    let before = now();
    // Ordering: a statistic.
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}
