//! Allocators that stand around another: each counts, and some refuse.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfrt_async::record::Level;
use tfrt_async::{AllocatorStats, HostAllocator};

/// Requests of this many bytes or fewer don't count against a fixed size.
const UNCOUNTED_BYTES: usize = 32;

/// What a [`ProfiledAllocator`] has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Allocations that are alive.
    pub current_allocations: u64,
    /// The most that were alive at once.
    pub max_allocations: u64,
    /// Allocations in all.
    pub total_allocations: u64,
    /// Bytes that are alive.
    pub current_bytes: u64,
    /// The most that were alive at once.
    pub max_bytes: u64,
}

/// The block that the original runtime prints.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "HostAllocator profile:")?;
        writeln!(
            f,
            "Current number of allocations = {}",
            self.current_allocations
        )?;
        writeln!(f, "Max number of allocations = {}", self.max_allocations)?;
        writeln!(
            f,
            "Total number of allocations = {}",
            self.total_allocations
        )?;
        writeln!(
            f,
            "Current number of bytes allocated = {}",
            self.current_bytes
        )?;
        write!(f, "Max number of bytes allocated = {}", self.max_bytes)
    }
}

/// A number that is counted up and down, and its maximum.
#[derive(Default)]
struct Gauge {
    current: AtomicU64,
    max: AtomicU64,
}

impl Gauge {
    fn add(&self, n: u64) {
        // Ordering: statistics.
        let now = self.current.fetch_add(n, Ordering::Relaxed) + n;
        self.max.fetch_max(now, Ordering::Relaxed);
    }

    fn sub(&self, n: u64) {
        // Ordering: a statistic.
        self.current.fetch_sub(n, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        // Ordering: statistics.
        (
            self.current.load(Ordering::Relaxed),
            self.max.load(Ordering::Relaxed),
        )
    }
}

/// Counts allocations and bytes of another allocator.
pub struct ProfiledAllocator {
    inner: Arc<dyn HostAllocator>,
    allocations: Gauge,
    bytes: Gauge,
    total: AtomicU64,
}

impl ProfiledAllocator {
    /// Counts what `inner` gives.
    pub fn new(inner: Arc<dyn HostAllocator>) -> Self {
        ProfiledAllocator {
            inner,
            allocations: Gauge::default(),
            bytes: Gauge::default(),
            total: AtomicU64::new(0),
        }
    }

    /// What was counted so far.
    pub fn profile(&self) -> Profile {
        let (current_allocations, max_allocations) = self.allocations.read();
        let (current_bytes, max_bytes) = self.bytes.read();
        // Ordering: a statistic.
        let total_allocations = self.total.load(Ordering::Relaxed);
        Profile {
            current_allocations,
            max_allocations,
            total_allocations,
            current_bytes,
            max_bytes,
        }
    }
}

// SAFETY: the blocks are those of the allocator inside, which makes the same promise.
unsafe impl HostAllocator for ProfiledAllocator {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = self.inner.allocate(layout)?;
        self.allocations.add(1);
        self.bytes.add(layout.size() as u64);
        // Ordering: a statistic.
        self.total.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.allocations.sub(1);
        self.bytes.sub(layout.size() as u64);
        // SAFETY: `allocate` got the block from `inner` with this layout (caller's duty).
        unsafe { self.inner.deallocate(block, layout) }
    }

    fn name(&self) -> &'static str {
        "profiled"
    }
}

/// Records how many bytes of another allocator are alive over time.
pub struct RecordedAllocator {
    inner: Arc<dyn HostAllocator>,
    bytes: Arc<Level>,
}

impl RecordedAllocator {
    /// Records what `inner` gives, and takes back, in `bytes`.
    pub fn new(inner: Arc<dyn HostAllocator>, bytes: Arc<Level>) -> Self {
        RecordedAllocator { inner, bytes }
    }
}

// SAFETY: the blocks are those of the allocator inside, which makes the same promise; a level does
// not unwind.
unsafe impl HostAllocator for RecordedAllocator {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = self.inner.allocate(layout)?;
        self.bytes.add(layout.size() as u64);
        Some(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.bytes.sub(layout.size() as u64);
        // SAFETY: `allocate` got the block from `inner` with this layout (caller's duty).
        unsafe { self.inner.deallocate(block, layout) }
    }

    /// That of the allocator inside: programs see no difference.
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn stats(&self) -> Option<AllocatorStats> {
        self.inner.stats()
    }
}

/// Hears about each allocation, release and refusal of a [`FixedSizeAllocator`].
pub type AllocationLog = dyn Fn(&str) + Send + Sync;

/// Gives out a fixed number of bytes, for tests of what happens when memory ends.
///
/// Requests of 32 bytes or fewer are passed through without being counted.
pub struct FixedSizeAllocator {
    inner: Arc<dyn HostAllocator>,
    remaining: AtomicU64,
    refusals: AtomicU64,
    log: Box<AllocationLog>,
}

impl FixedSizeAllocator {
    /// Gives out `bytes` of `inner`, and tells `log` about it, in the original's words.
    pub fn new(
        inner: Arc<dyn HostAllocator>,
        bytes: usize,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let remaining = AtomicU64::new(bytes as u64);
        FixedSizeAllocator {
            inner,
            remaining,
            refusals: AtomicU64::new(0),
            log: Box::new(log),
        }
    }

    fn reserve(&self, n: u64) -> Result<u64, u64> {
        // Ordering: only the number matters.
        self.remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(n)
            })
            .map(|before| before - n)
    }

    fn release(&self, n: u64) -> u64 {
        // Ordering: only the number matters.
        self.remaining.fetch_add(n, Ordering::Relaxed) + n
    }
}

// SAFETY: the blocks are those of the allocator inside, which makes the same promise.
unsafe impl HostAllocator for FixedSizeAllocator {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() <= UNCOUNTED_BYTES {
            return self.inner.allocate(layout);
        }
        let size = layout.size() as u64;
        match self.reserve(size) {
            Ok(remaining) => {
                (self.log)(&format!("Allocating {size} bytes. {remaining} remaining."));
                self.inner.allocate(layout).or_else(|| {
                    self.release(size);
                    None
                })
            }
            Err(remaining) => {
                // Ordering: a statistic.
                self.refusals.fetch_add(1, Ordering::Relaxed);
                (self.log)(&format!(
                    "Attempted to allocate {size} bytes. However current capacity is only {remaining}."
                ));
                None
            }
        }
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > UNCOUNTED_BYTES {
            let size = layout.size() as u64;
            let available = self.release(size);
            (self.log)(&format!("Freeing {size} bytes. {available} available."));
        }
        // SAFETY: `allocate` got the block from `inner` with this layout (caller's duty).
        unsafe { self.inner.deallocate(block, layout) }
    }

    fn name(&self) -> &'static str {
        "fixed size"
    }

    fn refusals(&self) -> u64 {
        // Ordering: a statistic.
        self.refusals.load(Ordering::Relaxed)
    }
}

/// Refuses what would exceed a limit, silently: the error of whoever asked says why.
pub struct LimitedAllocator {
    inner: Arc<dyn HostAllocator>,
    remaining: AtomicU64,
    refusals: AtomicU64,
}

impl LimitedAllocator {
    /// Gives out at most `bytes` of `inner` at once.
    pub fn new(inner: Arc<dyn HostAllocator>, bytes: usize) -> Self {
        LimitedAllocator {
            inner,
            remaining: AtomicU64::new(bytes as u64),
            refusals: AtomicU64::new(0),
        }
    }
}

// SAFETY: the blocks are those of the allocator inside, which makes the same promise.
unsafe impl HostAllocator for LimitedAllocator {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let size = layout.size() as u64;
        // Ordering: only the numbers matter.
        let taken = self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(size)
            });
        if taken.is_err() {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.inner.allocate(layout).or_else(|| {
            self.remaining.fetch_add(size, Ordering::Relaxed);
            None
        })
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // Ordering: only the number matters.
        self.remaining
            .fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: `allocate` got the block from `inner` with this layout (caller's duty).
        unsafe { self.inner.deallocate(block, layout) }
    }

    fn name(&self) -> &'static str {
        "limited"
    }

    /// Those that the allocator inside refused don't count.
    fn refusals(&self) -> u64 {
        // Ordering: a statistic.
        self.refusals.load(Ordering::Relaxed)
    }
}
