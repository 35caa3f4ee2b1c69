//! [`Block`]: owned memory of a host's allocator, given back by being dropped.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_async::HostAllocator;

/// An owned block of an allocator, not read or written through this handle.
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// use tfrt_host::memory::Block;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let block = Block::allocate(host.allocator(), Layout::new::<[u64; 4]>()).unwrap();
/// assert_eq!(block.layout().size(), 32);
/// ```
pub struct Block {
    allocator: Arc<dyn HostAllocator>,
    layout: Layout,
    // Invariant: `allocator` gave these bytes for `layout`, and nobody else gives them back.
    bytes: NonNull<u8>,
}

impl Block {
    /// Takes memory of this layout from `allocator`, if it has any left.
    pub fn allocate(allocator: &Arc<dyn HostAllocator>, layout: Layout) -> Option<Self> {
        let bytes = allocator.allocate(layout)?;
        Some(Block {
            allocator: allocator.clone(),
            layout,
            bytes,
        })
    }

    /// Takes so many bytes from `allocator`, if it has any left, for what has its memory from elsewhere: a decoder of
    /// somebody else's, say. A limit on the allocator counts it for as long as the block is held; nobody writes to the
    /// block, so that the system has no memory to give for it.
    pub fn reserve(allocator: &Arc<dyn HostAllocator>, len_bytes: usize) -> Option<Self> {
        Block::allocate(allocator, Layout::from_size_align(len_bytes, 1).ok()?)
    }

    /// Returns the size and alignment that were asked for.
    pub fn layout(&self) -> Layout {
        self.layout
    }
}

// SAFETY: a block owns its bytes, as a box would, and its allocator takes them back on any thread.
unsafe impl Send for Block {}
// SAFETY: a shared block tells where its bytes are, and neither reads nor writes them.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: by the field's invariant the bytes came from this allocator with this layout, and
        // this is the only place that gives them back.
        unsafe { self.allocator.deallocate(self.bytes, self.layout) }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("allocator", &self.allocator.name())
            .field("layout", &self.layout)
            .finish()
    }
}
