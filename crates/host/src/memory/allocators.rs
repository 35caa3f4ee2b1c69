//! Allocators that wrap another: each counts, and some refuse.
//!
//! Each hands on requests for bytes that are initialised, so that the one inside may give memory that was used before
//! without clearing it, and [`HostAllocator::trim`].

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfrt_async::record::Gauge;
use tfrt_async::{AllocatorStats, Contents, HostAllocator};

/// The largest size of requests that don't count against a fixed size.
const UNCOUNTED_BYTES: u64 = 32;

/// The kind of a request for memory: with contents that are anything, or with bytes that are initialised. Wrapping
/// allocators count both alike.
#[derive(Clone, Copy)]
enum AllocationRequest {
    Plain(Layout),
    Initialised(Layout, Contents),
}

impl AllocationRequest {
    fn size(self) -> u64 {
        let (AllocationRequest::Plain(layout) | AllocationRequest::Initialised(layout, _)) = self;
        layout.size() as u64
    }

    fn ask(self, allocator: &dyn HostAllocator) -> Option<NonNull<u8>> {
        match self {
            AllocationRequest::Plain(layout) => allocator.allocate(layout),
            AllocationRequest::Initialised(layout, contents) => {
                allocator.allocate_initialised(layout, contents)
            }
        }
    }
}

/// Defines the functions of an allocator that wraps `self.inner`, and counts by `self.take` and `self.count_back`.
///
/// ```text
/// fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
///     self.take(AllocationRequest::Plain(layout))
/// }
/// ```
macro_rules! stands_around_another {
    () => {
        fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
            self.take(AllocationRequest::Plain(layout))
        }

        fn allocate_initialised(&self, layout: Layout, contents: Contents) -> Option<NonNull<u8>> {
            self.take(AllocationRequest::Initialised(layout, contents))
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            self.count_back(layout);
            // SAFETY: `take` got the block from `inner` with this layout (caller's duty).
            unsafe { self.inner.deallocate(block, layout) }
        }

        unsafe fn deallocate_initialised(&self, block: NonNull<u8>, layout: Layout) {
            self.count_back(layout);
            // SAFETY: `take` got the block from `inner` with this layout, and its bytes are initialised (caller's
            // duty).
            unsafe { self.inner.deallocate_initialised(block, layout) }
        }

        fn trim(&self) -> usize {
            self.inner.trim()
        }
    };
}

/// The counters of a [`ProfiledAllocator`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Allocations that are alive.
    pub current_allocations: u64,
    /// The most allocations that were alive at once.
    pub max_allocations: u64,
    /// Allocations in all.
    pub total_allocations: u64,
    /// Bytes that are alive.
    pub current_bytes: u64,
    /// The most bytes that were alive at once.
    pub max_bytes: u64,
}

/// Writes the text that the original runtime prints.
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
struct Usage {
    current: AtomicU64,
    max: AtomicU64,
}

impl Usage {
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

/// An allocator that counts allocations and bytes of another.
pub struct ProfiledAllocator {
    inner: Arc<dyn HostAllocator>,
    allocations: Usage,
    bytes: Usage,
    total: AtomicU64,
}

impl ProfiledAllocator {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn HostAllocator>) -> Self {
        ProfiledAllocator {
            inner,
            allocations: Usage::default(),
            bytes: Usage::default(),
            total: AtomicU64::new(0),
        }
    }

    fn take(&self, request: AllocationRequest) -> Option<NonNull<u8>> {
        let block = request.ask(&*self.inner)?;
        self.allocations.add(1);
        self.bytes.add(request.size());
        // Ordering: a statistic.
        self.total.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    fn count_back(&self, layout: Layout) {
        self.allocations.sub(1);
        self.bytes.sub(layout.size() as u64);
    }

    /// Returns the counters.
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
    stands_around_another!();

    fn name(&self) -> &'static str {
        "profiled"
    }
}

/// An allocator that records how many bytes of another are alive over time.
pub struct RecordedAllocator {
    inner: Arc<dyn HostAllocator>,
    bytes: Arc<Gauge>,
}

impl RecordedAllocator {
    /// Wraps `inner`, and records allocated bytes in the gauge `bytes`.
    pub fn new(inner: Arc<dyn HostAllocator>, bytes: Arc<Gauge>) -> Self {
        RecordedAllocator { inner, bytes }
    }

    fn take(&self, request: AllocationRequest) -> Option<NonNull<u8>> {
        let block = request.ask(&*self.inner)?;
        self.bytes.add(request.size());
        Some(block)
    }

    fn count_back(&self, layout: Layout) {
        self.bytes.sub(layout.size() as u64);
    }
}

// SAFETY: the blocks are those of the allocator inside, which makes the same promise; a level does
// not unwind.
unsafe impl HostAllocator for RecordedAllocator {
    stands_around_another!();

    /// Returns the name of the allocator inside: programs see no difference.
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn stats(&self) -> Option<AllocatorStats> {
        self.inner.stats()
    }
}

/// A function that hears about each allocation, release and refusal of a [`FixedSizeAllocator`].
pub type AllocationLog = dyn Fn(&str) + Send + Sync;

/// An allocator with a fixed number of bytes, for tests of what happens when memory ends.
///
/// Requests of 32 bytes or fewer are passed through without being counted.
pub struct FixedSizeAllocator {
    inner: Arc<dyn HostAllocator>,
    remaining: AtomicU64,
    refusals: AtomicU64,
    log: Box<AllocationLog>,
}

impl FixedSizeAllocator {
    /// Wraps `inner` with a limit of `bytes`, and tells `log` about requests, in the original's words.
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

    fn take(&self, request: AllocationRequest) -> Option<NonNull<u8>> {
        let size = request.size();
        if size <= UNCOUNTED_BYTES {
            return request.ask(&*self.inner);
        }
        match self.reserve(size) {
            Ok(remaining) => {
                (self.log)(&format!("Allocating {size} bytes. {remaining} remaining."));
                request.ask(&*self.inner).or_else(|| {
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
                // A process at its limit keeps nothing that nobody uses.
                self.inner.trim();
                None
            }
        }
    }

    fn count_back(&self, layout: Layout) {
        let size = layout.size() as u64;
        if size > UNCOUNTED_BYTES {
            let available = self.release(size);
            (self.log)(&format!("Freeing {size} bytes. {available} available."));
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
    stands_around_another!();

    fn name(&self) -> &'static str {
        "fixed size"
    }

    fn refusals(&self) -> u64 {
        // Ordering: a statistic.
        self.refusals.load(Ordering::Relaxed)
    }
}

/// An allocator that refuses requests beyond a limit, silently: the error of whoever asked says why.
///
/// Memory is counted while it is in use. What the allocator inside keeps for later is not; before a request is refused
/// it is given back, too ([`HostAllocator::trim`]).
pub struct LimitedAllocator {
    inner: Arc<dyn HostAllocator>,
    remaining: AtomicU64,
    refusals: AtomicU64,
    last_refused_bytes: AtomicU64,
}

impl LimitedAllocator {
    /// Wraps `inner` with a limit of `bytes` at once.
    pub fn new(inner: Arc<dyn HostAllocator>, bytes: usize) -> Self {
        LimitedAllocator {
            inner,
            remaining: AtomicU64::new(bytes as u64),
            refusals: AtomicU64::new(0),
            last_refused_bytes: AtomicU64::new(0),
        }
    }

    fn take(&self, request: AllocationRequest) -> Option<NonNull<u8>> {
        let size = request.size();
        // What nobody uses goes first: the allocator inside may count it.
        let is_taken = self.reserve(size) || (self.inner.trim() > 0 && self.reserve(size));
        if !is_taken {
            // Ordering: statistics.
            self.last_refused_bytes.store(size, Ordering::Relaxed);
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        request.ask(&*self.inner).or_else(|| {
            // Ordering: only the number matters.
            self.remaining.fetch_add(size, Ordering::Relaxed);
            None
        })
    }

    fn count_back(&self, layout: Layout) {
        // Ordering: only the number matters.
        self.remaining
            .fetch_add(layout.size() as u64, Ordering::Relaxed);
    }

    fn reserve(&self, n: u64) -> bool {
        // Ordering: only the number matters.
        let taken = self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(n)
            });
        taken.is_ok()
    }
}

// SAFETY: the blocks are those of the allocator inside, which makes the same promise.
unsafe impl HostAllocator for LimitedAllocator {
    stands_around_another!();

    fn name(&self) -> &'static str {
        "limited"
    }

    /// Returns the refusals; those of the allocator inside don't count.
    fn refusals(&self) -> u64 {
        // Ordering: a statistic.
        self.refusals.load(Ordering::Relaxed)
    }

    fn last_refused_bytes(&self) -> u64 {
        // Ordering: a statistic.
        self.last_refused_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfrt_async::SystemAllocator;

    /// The system's allocator, which claims to have freed memory each time that it is trimmed.
    #[derive(Default)]
    struct Trimmed {
        system: SystemAllocator,
        n_trimmed: AtomicU64,
        n_zeros: AtomicU64,
    }

    // SAFETY: the blocks are the system allocator's, which makes the same promise.
    unsafe impl HostAllocator for Trimmed {
        fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
            self.system.allocate(layout)
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller's promise.
            unsafe { self.system.deallocate(block, layout) }
        }

        fn allocate_initialised(&self, layout: Layout, contents: Contents) -> Option<NonNull<u8>> {
            let is_cleared = u64::from(contents == Contents::Zeros);
            self.n_zeros.fetch_add(is_cleared, Ordering::Relaxed);
            self.system.allocate_initialised(layout, contents)
        }

        unsafe fn deallocate_initialised(&self, block: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller's promise.
            unsafe { self.system.deallocate_initialised(block, layout) }
        }

        fn trim(&self) -> usize {
            let n_before = self.n_trimmed.fetch_add(1, Ordering::Relaxed);
            usize::from(n_before == 0)
        }

        fn name(&self) -> &'static str {
            "trimmed"
        }
    }

    #[test]
    fn what_nobody_uses_is_given_back_before_memory_is_refused() {
        let inner = Arc::new(Trimmed::default());
        let limited = LimitedAllocator::new(inner.clone(), 100);
        let layout = Layout::from_size_align(101, 1).unwrap();
        for n in 1..3 {
            assert!(limited.allocate(layout).is_none());
            assert_eq!(inner.n_trimmed.load(Ordering::Relaxed), n);
            assert_eq!((limited.refusals(), limited.last_refused_bytes()), (n, 101));
        }
        let fixed = FixedSizeAllocator::new(inner.clone(), 100, |_| ());
        assert!(fixed.allocate(layout).is_none());
        assert_eq!(inner.n_trimmed.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn allocators_that_stand_around_another_hand_on_what_bytes_are_to_be() {
        let inner = Arc::new(Trimmed::default());
        let plain: Arc<dyn HostAllocator> = inner.clone();
        let around: [Arc<dyn HostAllocator>; 3] = [
            Arc::new(ProfiledAllocator::new(plain.clone())),
            Arc::new(FixedSizeAllocator::new(plain.clone(), 1 << 20, |_| ())),
            Arc::new(LimitedAllocator::new(plain.clone(), 1 << 20)),
        ];
        let layout = Layout::from_size_align(1 << 20, 64).unwrap();
        for allocator in around {
            let n_before = inner.n_zeros.load(Ordering::Relaxed);
            for contents in [Contents::Zeros, Contents::Unspecified] {
                let block = allocator.allocate_initialised(layout, contents).unwrap();
                // SAFETY: the block came from there with this layout, and its bytes are initialised.
                unsafe { allocator.deallocate_initialised(block, layout) };
            }
            assert_eq!(inner.n_zeros.load(Ordering::Relaxed), n_before + 1);
            allocator.trim();
        }
        assert_eq!(inner.n_trimmed.load(Ordering::Relaxed), 3);
    }
}
