//! [`HostAllocator`]: the contract for memory, and per-thread free lists over the system's.
//!
//! Cells, waiters and frames are small, of few sizes, and die soon after they were made. Their
//! blocks come from free lists that each thread keeps by size class. A block freed by another
//! thread than the one that took it goes to the list of the thread that freed it; a list that is
//! full gives blocks back to the system. So a thread never waits for another one, and holds at
//! most [`MAX_BLOCKS`] idle blocks of each class.
//!
//! Under loom, Miri and `--cfg tfrt_no_free_lists` (which a build for AddressSanitizer sets)
//! there are no free lists, since a recycled block hides a use after free.

use std::{
    alloc::{self, Layout},
    cell::Cell,
    fmt,
    ptr::{self, NonNull},
};

use crate::sync::statistic::{AtomicU64, Ordering};

/// Where a host gets its memory from.
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
/// back; and neither function may unwind.
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

    /// Returns the allocator's name, such as `system`.
    fn name(&self) -> &'static str;

    /// Returns what the allocator has counted, if it counts.
    fn stats(&self) -> Option<AllocatorStats> {
        None
    }
}

/// What an allocator has counted.
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

/// The system's allocator, as every Rust program uses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemAllocator(());

impl SystemAllocator {
    /// Returns the allocator.
    pub const fn new() -> SystemAllocator {
        SystemAllocator(())
    }
}

// SAFETY: the blocks are the system allocator's, which makes the same promise.
unsafe impl HostAllocator for SystemAllocator {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(layout.dangling_ptr());
        }
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc::alloc(layout) })
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        // SAFETY: the caller says that the block came from `allocate`, which for layouts of
        // this size called `alloc::alloc` with this layout.
        unsafe { alloc::dealloc(block.as_ptr(), layout) }
    }

    fn name(&self) -> &'static str {
        "system"
    }
}

/// The per-thread free lists that this crate's cells use, for others' small blocks.
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// use tfrt_async::{HostAllocator, RecyclingAllocator};
///
/// let allocator = RecyclingAllocator::new();
/// let layout = Layout::new::<[u64; 8]>();
/// let block = allocator.allocate(layout).expect("the system has 64 bytes");
/// // SAFETY: the block came from this allocator, with this layout.
/// unsafe { allocator.deallocate(block, layout) };
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RecyclingAllocator(());

impl RecyclingAllocator {
    /// Returns the allocator.
    pub const fn new() -> RecyclingAllocator {
        RecyclingAllocator(())
    }
}

// SAFETY: a block comes from the system allocator or from a free list of its size class, which it
// leaves when it is given out.
unsafe impl HostAllocator for RecyclingAllocator {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        Block::with(layout).allocate()
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller says that the block came from `allocate` with this layout.
        unsafe { free_block(block, Block::with(layout)) }
    }

    fn name(&self) -> &'static str {
        "recycling"
    }
}

/// Returns how many blocks came from free lists, from the system, and went back to it, by all
/// threads that have ended or called this; the caller's own are included.
pub fn recycling_stats() -> RecyclingStats {
    let _ = LISTS.try_with(FreeLists::publish);
    RecyclingStats {
        recycled: RECYCLED.load(Ordering::Relaxed),
        from_system: FROM_SYSTEM.load(Ordering::Relaxed),
        to_system: TO_SYSTEM.load(Ordering::Relaxed),
    }
}

/// What [`recycling_stats`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecyclingStats {
    /// Blocks that came from a free list.
    pub recycled: u64,
    /// Blocks that the system gave.
    pub from_system: u64,
    /// Blocks that went back to the system.
    pub to_system: u64,
}

static RECYCLED: AtomicU64 = AtomicU64::new(0);
static FROM_SYSTEM: AtomicU64 = AtomicU64::new(0);
static TO_SYSTEM: AtomicU64 = AtomicU64::new(0);

/// The granularity of size classes, and the alignment of their blocks.
const CLASS_BYTES: usize = 16;
const N_CLASSES: usize = 16;
const MAX_BLOCKS: u32 = 256;
const USES_FREE_LISTS: bool = !cfg!(any(loom, miri, tfrt_no_free_lists));
/// A planted bug: blocks that are a word too short.
const MISSING_BYTES: usize = if cfg!(tfrt_planted = "short-block") {
    8
} else {
    0
};

/// A layout with its size class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    layout: Layout,
    /// Which free list it belongs to, or `N_CLASSES` for none.
    class: usize,
}

impl Block {
    /// Returns the block that a `T` needs.
    pub(crate) const fn of<T>() -> Block {
        const { Block::with(Layout::new::<T>()) }
    }

    const fn with(layout: Layout) -> Block {
        let class = layout.size().div_ceil(CLASS_BYTES);
        let fits = layout.size() > 0 && layout.align() <= CLASS_BYTES && class <= N_CLASSES;
        if !fits || !USES_FREE_LISTS {
            let size = layout.size().saturating_sub(MISSING_BYTES);
            return match Layout::from_size_align(size, layout.align()) {
                Ok(layout) => Block {
                    layout,
                    class: N_CLASSES,
                },
                Err(_) => Block {
                    layout,
                    class: N_CLASSES,
                },
            };
        }
        match Layout::from_size_align(class * CLASS_BYTES, CLASS_BYTES) {
            Ok(layout) => Block {
                layout,
                class: class - 1,
            },
            Err(_) => Block {
                layout,
                class: N_CLASSES,
            },
        }
    }

    /// Returns the size of a block, in bytes.
    pub(crate) const fn size_bytes(self) -> usize {
        self.layout.size()
    }

    #[inline]
    fn allocate(self) -> Option<NonNull<u8>> {
        if self.class < N_CLASSES
            && let Ok(Some(block)) = LISTS.try_with(|lists| lists.pop(self.class))
        {
            return Some(block);
        }
        self.allocate_from_system()
    }

    #[inline(never)]
    fn allocate_from_system(self) -> Option<NonNull<u8>> {
        let _ = LISTS.try_with(|lists| lists.from_system.set(lists.from_system.get() + 1));
        SystemAllocator::new().allocate(self.layout)
    }
}

/// Returns a block; aborts the process if memory is exhausted.
#[inline]
pub(crate) fn allocate_block(block: Block) -> NonNull<u8> {
    block
        .allocate()
        .unwrap_or_else(|| alloc::handle_alloc_error(block.layout))
}

/// Takes a block back.
///
/// # Safety
///
/// `address` came from an allocation of the same `block`, by any thread, and is not used again.
#[inline]
pub(crate) unsafe fn free_block(address: NonNull<u8>, block: Block) {
    if block.class < N_CLASSES {
        // SAFETY: the caller says that the block belongs to this class and is not used again.
        let kept = LISTS.try_with(|lists| unsafe { lists.push(address, block.class) });
        if kept == Ok(true) {
            return;
        }
    }
    // SAFETY: the caller says that the block has this layout. All blocks come from the system.
    unsafe { free_to_system(address, block.layout) };
}

/// Gives a block back to the system.
///
/// # Safety
///
/// `address` came from the system with this `layout`, and is not used again.
#[inline(never)]
unsafe fn free_to_system(address: NonNull<u8>, layout: Layout) {
    let _ = LISTS.try_with(|lists| lists.to_system.set(lists.to_system.get() + 1));
    // SAFETY: the caller's promise is the same.
    unsafe { SystemAllocator::new().deallocate(address, layout) };
}

/// What an idle block holds.
struct Idle {
    next: *mut Idle,
}

struct FreeList {
    /// Invariant: the head of a list of idle blocks of one class, all ours.
    head: Cell<*mut Idle>,
    n_blocks: Cell<u32>,
}

struct FreeLists {
    classes: [FreeList; N_CLASSES],
    recycled: Cell<u64>,
    from_system: Cell<u64>,
    to_system: Cell<u64>,
}

thread_local! {
    static LISTS: FreeLists = const { FreeLists::new() };
}

impl FreeLists {
    const fn new() -> FreeLists {
        FreeLists {
            classes: [const {
                FreeList {
                    head: Cell::new(ptr::null_mut()),
                    n_blocks: Cell::new(0),
                }
            }; N_CLASSES],
            recycled: Cell::new(0),
            from_system: Cell::new(0),
            to_system: Cell::new(0),
        }
    }

    #[inline]
    fn pop(&self, class: usize) -> Option<NonNull<u8>> {
        let list = &self.classes[class];
        let block = NonNull::new(list.head.get())?;
        // SAFETY: by the list's invariant this is an idle block, which holds an `Idle`.
        let next = unsafe { block.as_ref() }.next;
        list.head.set(next);
        list.n_blocks.set(list.n_blocks.get() - 1);
        self.recycled.set(self.recycled.get() + 1);
        Some(block.cast())
    }

    /// Keeps a block; returns false if the list is full.
    ///
    /// # Safety
    ///
    /// `address` is a block of this class that nobody uses.
    #[inline]
    unsafe fn push(&self, address: NonNull<u8>, class: usize) -> bool {
        let list = &self.classes[class];
        if list.n_blocks.get() >= MAX_BLOCKS {
            return false;
        }
        let block = address.cast::<Idle>();
        // SAFETY: every class has room for an `Idle`, and the caller gives the block away.
        unsafe {
            block.write(Idle {
                next: list.head.get(),
            })
        };
        list.head.set(block.as_ptr());
        list.n_blocks.set(list.n_blocks.get() + 1);
        true
    }

    /// Moves this thread's statistics to the process's.
    fn publish(&self) {
        RECYCLED.fetch_add(self.recycled.take(), Ordering::Relaxed);
        FROM_SYSTEM.fetch_add(self.from_system.take(), Ordering::Relaxed);
        TO_SYSTEM.fetch_add(self.to_system.take(), Ordering::Relaxed);
    }
}

impl Drop for FreeLists {
    fn drop(&mut self) {
        for class in 0..N_CLASSES {
            let size = (class + 1) * CLASS_BYTES;
            let Ok(layout) = Layout::from_size_align(size, CLASS_BYTES) else {
                continue;
            };
            while let Some(block) = self.pop(class) {
                self.recycled.set(self.recycled.get() - 1);
                self.to_system.set(self.to_system.get() + 1);
                // SAFETY: blocks of this class came from the system with this layout.
                unsafe { SystemAllocator::new().deallocate(block, layout) };
            }
        }
        self.publish();
    }
}

impl fmt::Debug for FreeLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = self.classes.iter().map(|list| list.n_blocks.get());
        f.debug_list().entries(blocks).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
