//! The heap of each thread: where blocks are taken and given back.
//!
//! # Threads that end
//!
//! Heaps live forever, in a registry; a thread that begins takes one over whose thread has
//! ended. A thread that ends releases all chunks that nobody has blocks of. What still comes back
//! to its heap is put in order by the thread that gives it, under the registry's lock.

use std::{
    cell::Cell,
    ptr::{self, NonNull},
};

use super::{
    chunk::{CHUNK_BYTES, Chunk},
    class::Class,
    heap::Heap,
    returned::{IdleBlock, OwnerPresence},
};
#[cfg(debug_assertions)]
use crate::accounting::{ObjectKind, report, withdraw};
use crate::sync::statistic::{AtomicU64, Mutex, MutexGuard, Ordering};

thread_local! {
    /// The heap of this thread, or null: before the first block, and after the thread's end.
    static HEAP: Cell<*const Heap> = const { Cell::new(ptr::null()) };
    static END: ThreadExit = const { ThreadExit };
}

/// A guard that leaves the thread's heap when the thread ends.
struct ThreadExit;

impl Drop for ThreadExit {
    fn drop(&mut self) {
        // SAFETY: what is there is a heap of the registry, which lives forever.
        if let Some(heap) = unsafe { HEAP.replace(ptr::null()).as_ref() } {
            registry().leave(heap);
        }
    }
}

/// Returns a block of a class, if the system has memory.
#[inline(always)]
pub(super) fn allocate(class: Class) -> Option<NonNull<u8>> {
    // SAFETY: what is there is a heap of the registry, which lives forever.
    if let Some(heap) = unsafe { HEAP.get().as_ref() }
        && let Some(block) = heap.pop(class)
    {
        return Some(block);
    }
    allocate_slowly(class)
}

/// Takes a block back.
///
/// # Safety
///
/// The block came from [`allocate`] of this class, in any thread, and is not used again.
#[inline(always)]
pub(super) unsafe fn free(block: NonNull<u8>, class: Class) {
    let chunk = Chunk::of(block);
    // SAFETY: by `heap.rs`'s second invariant the chunk is there.
    let owner = unsafe { chunk.as_ref() }.owner();
    // SAFETY: heaps live forever.
    let owner = unsafe { &*owner };
    if !ptr::eq(owner, HEAP.get()) {
        return return_to(owner, block.cast());
    }
    // SAFETY: the block is one of this chunk of our heap, and the caller's to give.
    unsafe { owner.take_back(chunk, block.cast(), class) };
}

/// Takes back a block of any class.
///
/// # Safety
///
/// The block came from [`allocate`], in any thread, and is not used again.
#[inline(always)]
pub(super) unsafe fn free_any(block: NonNull<u8>) {
    // SAFETY: by `heap.rs`'s second invariant the chunk is there.
    let class = unsafe { Chunk::of(block).as_ref() }.class();
    // SAFETY: the caller's promise is the same; the blocks of a chunk are of one class.
    unsafe { free(block, class) };
}

/// Counts blocks that come from the system directly: so many more, of so many bytes; both wrap.
pub(super) fn count_large(n: u64, len_bytes: u64) {
    // Whoever has one in its hands is waited for.
    #[cfg(debug_assertions)]
    register_thread();
    // SAFETY: what is there is a heap of the registry, which lives forever.
    if let Some(heap) = unsafe { HEAP.get().as_ref() } {
        heap.large_blocks.add(n);
        heap.large_bytes.add(len_bytes);
        return;
    }
    // Ordering: statistics.
    LATE.0.fetch_add(n, Ordering::Relaxed);
    LATE.1.fetch_add(len_bytes, Ordering::Relaxed);
    #[cfg(debug_assertions)]
    registry().report_at_end();
}

/// Returns a number that few other threads have.
pub(super) fn number() -> usize {
    // SAFETY: what is there is a heap of the registry, which lives forever.
    unsafe { HEAP.get().as_ref() }.map_or(0, |heap| heap.number)
}

/// The blocks, and their bytes, that threads without a heap have counted.
static LATE: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// Takes blocks that other threads have returned to this thread's heap.
pub(super) fn collect() {
    // SAFETY: what is there is a heap of the registry, which lives forever.
    if let Some(heap) = unsafe { HEAP.get().as_ref() }
        && !heap.returned.seems_empty()
    {
        heap.collect(OwnerPresence::Present);
    }
}

#[cold]
#[inline(never)]
fn allocate_slowly(class: Class) -> Option<NonNull<u8>> {
    // SAFETY: what is there is a heap of the registry, which lives forever.
    if let Some(heap) = unsafe { HEAP.get().as_ref() } {
        return heap.pop_or_refill(class);
    }
    if let Some(heap) = adopt() {
        return heap.pop_or_refill(class);
    }
    // The thread is past its end: it has a heap for this block only.
    let mut registry = registry();
    let heap = registry.enter();
    let block = heap.pop_or_refill(class);
    registry.leave(heap);
    block
}

/// Lets the calling thread, which has no heap, have one, unless it is past its end.
fn adopt() -> Option<&'static Heap> {
    END.try_with(|_| ()).ok()?;
    let heap = registry().enter();
    HEAP.set(heap);
    Some(heap)
}

/// Lets the calling thread have a heap before it takes its first block of one.
#[cfg(debug_assertions)]
pub(crate) fn register_thread() {
    if HEAP.get().is_null() {
        let _ = adopt();
    }
}

/// Returns a block to the heap of another thread.
#[cold]
#[inline(never)]
fn return_to(owner: &'static Heap, block: NonNull<IdleBlock>) {
    // SAFETY: the block was given to the caller, and every class has room for an `IdleBlock`.
    if unsafe { owner.returned.push(block) } == OwnerPresence::Gone {
        registry().tidy(owner);
    }
}

/// All heaps.
struct Registry {
    all: Vec<&'static Heap>,
    /// Heaps without a thread.
    free: Vec<&'static Heap>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
        all: Vec::new(),
        free: Vec::new(),
    });
    // Nothing panics while it holds this lock.
    REGISTRY
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Registry {
    /// Returns a heap for the calling thread.
    fn enter(&mut self) -> &'static Heap {
        #[cfg(debug_assertions)]
        self.withdraw_report();
        let Some(heap) = self.free.pop() else {
            let heap: &'static Heap = Box::leak(Box::new(Heap::new(self.all.len())));
            self.all.push(heap);
            return heap;
        };
        heap.collect(OwnerPresence::Present);
        heap
    }

    /// Leaves a heap without a thread.
    fn leave(&mut self, heap: &'static Heap) {
        // Whoever returns a block from here on is told so, and waits for the lock.
        heap.collect(OwnerPresence::Gone);
        heap.close();
        self.free.push(heap);
        #[cfg(debug_assertions)]
        self.report_at_end();
    }

    /// Takes back what was returned to a heap without a thread.
    fn tidy(&mut self, heap: &'static Heap) {
        if self.free.iter().any(|free| ptr::eq(*free, heap)) {
            heap.collect(OwnerPresence::Gone);
            heap.release_spare();
            // A thread that has no heap, perhaps no more, may be the last to give something back.
            #[cfg(debug_assertions)]
            self.report_at_end();
        }
    }
}

/// The sums of all heaps' counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeapTotals {
    pub(super) allocated: u64,
    pub(super) freed: u64,
    pub(super) live_bytes: u64,
    pub(super) misses: u64,
    pub(super) returned: u64,
    pub(super) chunk_bytes: u64,
    pub(super) large_blocks: u64,
    pub(super) large_bytes: u64,
}

impl HeapTotals {
    /// Blocks that were taken and not given back.
    pub(super) fn live_blocks(&self) -> u64 {
        let from_lists = self.allocated.saturating_sub(self.freed);
        from_lists.wrapping_add(self.large_blocks)
    }
}

#[cfg(debug_assertions)]
impl Registry {
    /// Reports how many blocks are in use if no thread has a heap any more.
    fn report_at_end(&self) {
        if self.free.len() == self.all.len() {
            report(ObjectKind::Blocks, self.sums().live_blocks());
        }
    }

    /// Withdraws the reported number of blocks if no thread has a heap yet.
    fn withdraw_report(&self) {
        if self.free.len() == self.all.len() {
            withdraw(ObjectKind::Blocks);
        }
    }
}

/// Adds the counters of all heaps up.
pub(super) fn sums() -> HeapTotals {
    registry().sums()
}

impl Registry {
    fn sums(&self) -> HeapTotals {
        let mut sums = HeapTotals {
            // Ordering: statistics.
            large_blocks: LATE.0.load(Ordering::Relaxed),
            large_bytes: LATE.1.load(Ordering::Relaxed),
            ..HeapTotals::default()
        };
        let bytes = |class: Class| u64::try_from(class.size_bytes()).unwrap_or(u64::MAX);
        let chunk_bytes = u64::try_from(CHUNK_BYTES).unwrap_or(u64::MAX);
        for heap in &self.all {
            for class in Class::all() {
                let slot = heap.slot(class);
                let (allocated, freed) = (slot.allocated.get(), slot.freed.get());
                sums.allocated += allocated;
                sums.freed += freed;
                // The two are read at different times.
                sums.live_bytes += allocated.saturating_sub(freed) * bytes(class);
            }
            sums.misses += heap.n_misses.get();
            sums.returned += heap.n_returned.get();
            sums.chunk_bytes += heap.n_chunks.get() * chunk_bytes;
            sums.large_blocks = sums.large_blocks.wrapping_add(heap.large_blocks.get());
            sums.large_bytes = sums.large_bytes.wrapping_add(heap.large_bytes.get());
        }
        sums
    }
}
