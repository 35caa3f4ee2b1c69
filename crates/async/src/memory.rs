//! [`HostAllocator`]: the contract for memory, and per-thread free lists over the system's.
//!
//! Cells, waiters, frames and buffers are of few sizes and die soon after they were made. Blocks of
//! up to 32 KiB come from free lists that each thread keeps by size class. A block that another thread
//! frees goes back to the thread that took it, without a lock. Larger blocks of bytes, as tensors have
//! them, are kept for a while when they are given back, for the whole process; other large blocks are the
//! system's.
//!
//! | Part | Is |
//! |---|---|
//! | `memory/class.rs` | the sizes that there are |
//! | `memory/chunk.rs` | memory from the system, cut into blocks of one size |
//! | `memory/heap.rs` | the chunks of one thread |
//! | `memory/thread.rs` | which thread has which heap |
//! | `memory/returned.rs` | blocks on their way back to their thread |
//! | `memory/large.rs` | large blocks of bytes that are idle |
//! | `memory/sweeper.rs` | timers that give them back to the system while nothing happens |
//! | `memory/shared.rs` | a value and bytes in one block of an allocator, counted |
//!
//! Under loom, Miri and `--cfg tfrt_no_free_lists` (which a build for AddressSanitizer sets) all
//! blocks are the system's, since a recycled block hides a use after free.

use std::{
    alloc::{self, Layout},
    ptr::NonNull,
};

use self::class::Class;
use self::large::LargeClass;

mod chunk;
mod class;
mod heap;
mod large;
mod returned;
mod shared;
#[cfg(not(loom))]
mod sweeper;
mod thread;

pub use shared::SharedBlock;
#[cfg(not(loom))]
pub use sweeper::{MemoryUser, register_memory_user};
#[cfg(debug_assertions)]
pub(crate) use thread::register_thread;

#[cfg(all(test, not(loom)))]
mod tests;

/// An allocator of host memory: frames, values and buffers come from it.
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// use tfrt_async::{HostAllocator, SystemAllocator};
///
/// let allocator = SystemAllocator::new();
/// let layout = Layout::from_size_align(100, 64).unwrap();
/// let block = allocator.allocate(layout).expect("the system has a hundred bytes");
/// assert!(block.addr().get() % 64 == 0);
/// // SAFETY: the block came from this allocator, with this layout.
/// unsafe { allocator.deallocate(block, layout) };
/// ```
///
/// # Safety
///
/// Code that is `unsafe` writes to what `allocate` returns. So it must be a block of the layout's
/// size and alignment, valid for reads and writes, that nobody else uses until `deallocate` takes it
/// back; and no function may unwind. Of what `allocate_initialised` returns all bytes are initialised, and zeros if
/// that was asked for. `is_system` is what it says.
pub unsafe trait HostAllocator: Send + Sync + 'static {
    /// Returns a block with the given layout, or `None` if memory is exhausted.
    ///
    /// A layout of size zero is allowed and gives a pointer that must not be read from.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// `block` came from `allocate` of this allocator with the same `layout`, and is not used
    /// again.
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout);

    /// Returns a block with the given layout all of whose bytes are initialised, or `None` if memory is exhausted.
    ///
    /// An allocator that keeps blocks which come back by
    /// [`deallocate_initialised`](Self::deallocate_initialised) need not clear them for [`Contents::Unspecified`].
    /// One that stands around another hands the request on. By default a block is allocated and cleared.
    fn allocate_initialised(&self, layout: Layout, contents: Contents) -> Option<NonNull<u8>> {
        let _ = contents;
        let block = self.allocate(layout)?;
        // SAFETY: the block has so many bytes.
        unsafe { block.write_bytes(0, layout.size()) };
        Some(block)
    }

    /// Takes a block back whose bytes are all initialised.
    ///
    /// # Safety
    ///
    /// `block` came from `allocate_initialised` of this allocator with the same `layout`, all of its bytes are
    /// initialised, and it is not used again.
    unsafe fn deallocate_initialised(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise is more; by default the block came from there.
        unsafe { self.deallocate(block, layout) };
    }

    /// Gives memory that nobody uses back to where it came from, and returns how many bytes that were.
    ///
    /// A limit that refuses a request asks for it, and tries once more.
    fn trim(&self) -> usize {
        0
    }

    /// Returns the allocator's name, such as `system`.
    fn name(&self) -> &'static str;

    /// Returns true if this is a [`SystemAllocator`]. They are all the same, so that what one has allocated any
    /// other takes back: blocks need not keep theirs.
    fn is_system(&self) -> bool {
        false
    }

    /// Returns how many requests it has refused because of a limit that it has.
    fn refusals(&self) -> u64 {
        0
    }

    /// Returns the bytes that the last of these requests asked for; 0 if there was none.
    fn last_refused_bytes(&self) -> u64 {
        0
    }

    /// Returns the allocator's counters, if it counts.
    fn stats(&self) -> Option<AllocatorStats> {
        None
    }
}

/// The initial contents of a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// All are 0.
    Zeros,
    /// Anything: perhaps what somebody else has left there. For who writes all of them anyway.
    Unspecified,
}

/// The counters of an allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// Blocks given out and not taken back.
    pub live_allocations: u64,
    /// The most blocks that were out at one time.
    pub max_allocations: u64,
    /// Blocks given out so far.
    pub total_allocations: u64,
    /// Bytes given out and not taken back.
    pub live_bytes: u64,
    /// The most bytes that were out at one time.
    pub max_bytes: u64,
}

/// The system's memory, as every Rust program uses it, behind free lists that each thread has.
///
/// What all threads have got is told by [`memory_stats`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemAllocator(());

impl SystemAllocator {
    /// Returns the allocator.
    pub const fn new() -> SystemAllocator {
        SystemAllocator(())
    }
}

// SAFETY: a block comes from the system, or from a free list of blocks that are at least as large
// and as aligned, which it leaves when it is given out. Neither way unwinds.
unsafe impl HostAllocator for SystemAllocator {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        match Class::of_small(layout) {
            Some(class) if USES_FREE_LISTS => thread::allocate(class),
            _ => allocate_rare(layout),
        }
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if USES_FREE_LISTS && Class::has(layout) {
            // SAFETY: the caller says that the block came from `allocate` with this layout, which
            // took it from there.
            return unsafe { thread::free_any(block) };
        }
        // SAFETY: as above: layouts without a class are the system's.
        unsafe { free_large(block, layout) };
    }

    fn allocate_initialised(&self, layout: Layout, contents: Contents) -> Option<NonNull<u8>> {
        if let Some(class) = large_class(layout) {
            let (block, is_cleared) = large::allocate(class)?;
            if contents == Contents::Zeros && !is_cleared {
                // SAFETY: a block of the class has as many bytes as the layout at least.
                unsafe { block.write_bytes(0, layout.size()) };
            }
            return Some(block);
        }
        if USES_FREE_LISTS && Class::has(layout) {
            let block = self.allocate(layout)?;
            // SAFETY: the block has so many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
            return Some(block);
        }
        allocate_large(layout, alloc::alloc_zeroed)
    }

    unsafe fn deallocate_initialised(&self, block: NonNull<u8>, layout: Layout) {
        match large_class(layout) {
            // SAFETY: the caller says that the block came from `allocate_initialised`, which took it from there, and
            // that its bytes are initialised.
            Some(class) => unsafe { large::free(block, class) },
            // SAFETY: as above: other layouts are as for `allocate`.
            None => unsafe { self.deallocate(block, layout) },
        }
    }

    fn trim(&self) -> usize {
        trim_memory()
    }

    fn name(&self) -> &'static str {
        "system"
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// The counters of all threads' free lists. Exact while no other thread is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Blocks in use, large ones included. A block on its way back to another thread than the
    /// caller is in use until that thread takes it.
    pub live_blocks: u64,
    /// The bytes of these blocks, as they were rounded up.
    pub live_bytes: u64,
    /// Requests that a free list had a block for.
    pub hits: u64,
    /// Requests that no free list had a block for: more had to be cut, or fetched from the system.
    pub misses: u64,
    /// Blocks that another thread than their own freed.
    pub returned: u64,
    /// Bytes that the free lists have from the system: blocks in use, and idle ones.
    pub chunk_bytes: u64,
    /// Bytes of large blocks that nobody uses, kept for those to come.
    pub idle_bytes: u64,
}

/// Returns the counters of all threads' free lists.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, memory_stats};
///
/// let before = memory_stats();
/// let (promise, value) = AsyncValue::<i32>::pending();
/// # if before.chunk_bytes > 0 {
/// assert_eq!(memory_stats().live_blocks, before.live_blocks + 1);
/// # }
/// # drop((promise, value));
/// ```
pub fn memory_stats() -> MemoryStats {
    collect();
    let sums = thread::sums();
    MemoryStats {
        live_blocks: sums.live_blocks(),
        live_bytes: sums.live_bytes.wrapping_add(sums.large_bytes),
        hits: sums.allocated.saturating_sub(sums.misses),
        misses: sums.misses,
        returned: sums.returned,
        chunk_bytes: sums.chunk_bytes,
        idle_bytes: u64::try_from(large::idle_bytes()).unwrap_or(u64::MAX),
    }
}

/// Gives all large blocks that nobody uses back to the system; returns how many bytes they have.
///
/// Whoever is refused memory asks for it by himself. A service that knows that it will be quiet may ask, too: the next
/// call then takes its memory from the system.
///
/// # Examples
///
/// ```
/// use tfrt_async::{memory_stats, trim_memory};
///
/// trim_memory();
/// assert_eq!(memory_stats().idle_bytes, 0);
/// ```
pub fn trim_memory() -> usize {
    match USES_FREE_LISTS {
        true => large::trim(),
        false => 0,
    }
}

/// Gives the large blocks back to the system that nobody has used since the last time that somebody asked for this;
/// returns how many bytes they have.
///
/// It is done each second, by whoever frees large blocks, and by [users of memory](register_memory_user).
pub fn sweep_memory() -> usize {
    match USES_FREE_LISTS {
        true => large::sweep(),
        false => 0,
    }
}

/// Returns what `allocate` returns; if that is nothing, frees idle memory and calls it once more.
fn or_after_trim(allocate: impl Fn() -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    allocate().or_else(|| match trim_memory() {
        0 => None,
        _ => allocate(),
    })
}

/// Returns the class of a large block of bytes, if there is one for the layout.
fn large_class(layout: Layout) -> Option<LargeClass> {
    match USES_FREE_LISTS {
        true => LargeClass::of(layout),
        false => None,
    }
}

/// Returns whether blocks of a layout are large: worth keeping.
const fn is_large(layout: Layout) -> bool {
    layout.size() > class::MAX_BYTES
}

/// Takes blocks that other threads have given back to this one, before it sleeps.
pub(crate) fn collect() {
    if USES_FREE_LISTS {
        thread::collect();
    }
}

const USES_FREE_LISTS: bool = !cfg!(any(loom, shuttle, miri, tfrt_no_free_lists));

/// A layout of blocks, and the free list that they come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLayout {
    layout: Layout,
    /// The size class whose free list blocks come from; `None` for blocks of the system.
    class: Option<Class>,
}

impl BlockLayout {
    /// Returns the block that a `T` needs.
    pub(crate) const fn of<T>() -> BlockLayout {
        const { BlockLayout::with(Layout::new::<T>()) }
    }

    const fn with(layout: Layout) -> BlockLayout {
        let class = if USES_FREE_LISTS {
            Class::of(layout)
        } else {
            None
        };
        BlockLayout { layout, class }
    }

    /// Returns the size of a block, in bytes.
    pub(crate) const fn size_bytes(self) -> usize {
        match self.class {
            Some(class) => class.size_bytes(),
            None => self.layout.size(),
        }
    }

    #[inline(always)]
    fn allocate(self) -> Option<NonNull<u8>> {
        match self.class {
            Some(class) => thread::allocate(class),
            None => allocate_large(self.layout, alloc::alloc),
        }
    }
}

/// Returns a block; aborts the process if memory is exhausted.
#[inline(always)]
pub(crate) fn allocate_block(block: BlockLayout) -> NonNull<u8> {
    block
        .allocate()
        .unwrap_or_else(|| alloc::handle_alloc_error(block.layout))
}

/// Takes a block back.
///
/// # Safety
///
/// `address` came from an allocation of the same `block`, by any thread, and is not used again.
#[inline(always)]
pub(crate) unsafe fn free_block(address: NonNull<u8>, block: BlockLayout) {
    match block.class {
        // SAFETY: the caller says that it came from there.
        Some(class) => unsafe { thread::free(address, class) },
        // SAFETY: the caller's promise is the same.
        None => unsafe { free_large(address, block.layout) },
    }
}

/// Returns a block of a layout that is not small.
#[inline(never)]
fn allocate_rare(layout: Layout) -> Option<NonNull<u8>> {
    BlockLayout::with(layout).allocate()
}

/// Returns a block of the system's, by `allocate`, one of the two functions that give such.
#[inline(never)]
fn allocate_large(layout: Layout, allocate: unsafe fn(Layout) -> *mut u8) -> Option<NonNull<u8>> {
    if layout.size() == 0 {
        return Some(layout.dangling_ptr());
    }
    // SAFETY: the size is not zero.
    let block = or_after_trim(|| NonNull::new(unsafe { allocate(layout) }))?;
    if USES_FREE_LISTS {
        thread::count_large(1, len_bytes(layout));
    }
    Some(block)
}

/// Gives a block back to the system.
///
/// # Safety
///
/// `address` came from [`allocate_large`] with this `layout`, and is not used again.
#[inline(never)]
unsafe fn free_large(address: NonNull<u8>, layout: Layout) {
    if layout.size() == 0 {
        return;
    }
    if USES_FREE_LISTS {
        thread::count_large(1_u64.wrapping_neg(), len_bytes(layout).wrapping_neg());
    }
    // SAFETY: the caller says that the block came from the system, with this layout.
    unsafe { alloc::dealloc(address.as_ptr(), layout) };
}

fn len_bytes(layout: Layout) -> u64 {
    u64::try_from(layout.size()).unwrap_or(u64::MAX)
}
