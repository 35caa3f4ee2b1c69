//! [`MemoryReservation`]: a growing reservation of memory that comes from elsewhere, so that limits count it.

use std::fmt;
use std::sync::Arc;

use tfrt_async::HostAllocator;

use super::Block;

/// A reservation of memory that grows, for data whose memory comes from elsewhere: a limit on the allocator counts it,
/// and is asked before there is much. Given back by being dropped.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tfrt_host::memory::{MemoryReservation, LimitedAllocator};
/// use tfrt_host::{HostAllocator, HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let limited: Arc<dyn HostAllocator> = Arc::new(LimitedAllocator::new(host.allocator().clone(), 1_000));
/// let mut reservation = MemoryReservation::new(&limited);
/// assert!(reservation.add(600) && reservation.add(300));
/// assert!(!reservation.add(600), "there are no 1,500 bytes");
/// ```
pub struct MemoryReservation {
    allocator: Arc<dyn HostAllocator>,
    blocks: Vec<Block>,
    /// The bytes of all blocks.
    n_bytes: usize,
    /// The bytes of the blocks that are not used up.
    n_left: usize,
}

impl MemoryReservation {
    /// Returns an empty reservation.
    pub fn new(allocator: &Arc<dyn HostAllocator>) -> Self {
        MemoryReservation {
            allocator: allocator.clone(),
            blocks: Vec::new(),
            n_bytes: 0,
            n_left: 0,
        }
    }

    /// Reserves so many more bytes; false if the allocator has no memory left.
    #[must_use]
    pub fn add(&mut self, n_bytes: usize) -> bool {
        if n_bytes > self.n_left {
            // A quarter more than there is, so that there are few blocks.
            let more = n_bytes.max(self.n_bytes / 4);
            let Some(block) = Block::reserve(&self.allocator, more) else {
                return false;
            };
            self.blocks.push(block);
            self.n_bytes = self.n_bytes.saturating_add(more);
            self.n_left = self.n_left.saturating_add(more);
        }
        self.n_left -= n_bytes;
        true
    }
}

impl fmt::Debug for MemoryReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryReservation")
            .field("allocator", &self.allocator.name())
            .field("n_bytes", &self.n_bytes)
            .finish()
    }
}
