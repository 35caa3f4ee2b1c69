//! A heap: the chunks of one thread, and how blocks come and go. Which thread has which heap is
//! told in `thread.rs`.
//!
//! Every thread that takes blocks has a heap. Of each class it has a *current* chunk, which it
//! takes blocks from, and other chunks that have idle blocks, too (*partial*) or none (*full*). A
//! chunk that nobody has a block of is kept as a *spare*, a few of them, or released.
//!
//! ```text
//!            out of blocks             a block comes back
//!  current ---------------> full ----------------------------> partial
//!     ^                                                        |     |
//!     +--------------- the current one is out of blocks -------+     | the last block comes back
//!     +------------------------- spare <-----------------------------+
//! ```
//!
//! Each chunk has a countdown of the blocks that come back before the heap must do something:
//!
//! | Chunk | Countdown | At zero |
//! |---|---|---|
//! | current | blocks in use, and one more | never |
//! | full | one | it becomes partial |
//! | partial | blocks in use | it becomes a spare |
//!
//! A block that another thread frees goes to the [`ReturnedBlocks`] list of its heap, which the owner
//! takes when it runs out of idle blocks of some class, and when its thread goes to sleep.
//!
//! # Invariants
//!
//! * The cells of a heap and of its chunks are touched by the thread whose heap it is; for a heap
//!   without a thread, by whoever has the registry's lock.
//! * A block in use belongs to a chunk that is not released.

use std::{cell::Cell, ptr::NonNull};

use super::{
    chunk::{Chunk, EmptyChunk, cut},
    class::{Class, N_CLASSES},
    returned::{IdleBlock, OwnerPresence, ReturnedBlocks},
};
use crate::sync::statistic::{AtomicU64, Ordering};

/// The number of chunks without blocks in use that a heap keeps.
const MAX_SPARE: u32 = 4;

/// The chunks of one thread.
pub(super) struct Heap {
    /// The number of heaps that were made before.
    pub(super) number: usize,
    slots: [ClassChunks; N_CLASSES],
    spare: Cell<Option<NonNull<Chunk>>>,
    n_spare: Cell<u32>,
    pub(super) returned: ReturnedBlocks,
    /// The number of times that a class had no idle block.
    pub(super) n_misses: Counter,
    pub(super) n_returned: Counter,
    pub(super) n_chunks: Counter,
    /// Blocks too large for a class that are in use, as this thread has seen them come and go.
    pub(super) large_blocks: Counter,
    pub(super) large_bytes: Counter,
}

// SAFETY: the module's second invariant says which thread touches the cells; the counters and the
// list of returned blocks are for all threads.
unsafe impl Sync for Heap {}

/// The chunks of one size class in a heap.
pub(super) struct ClassChunks {
    current: Cell<NonNull<Chunk>>,
    partial: Cell<Option<NonNull<Chunk>>>,
    pub(super) allocated: Counter,
    pub(super) freed: Counter,
}

/// A statistic that one thread counts and others read.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    #[inline(always)]
    pub(super) fn add(&self, n: u64) {
        // Ordering: a statistic. Nobody else writes it.
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(n);
        self.0.store(sum, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        // Ordering: a statistic.
        self.0.load(Ordering::Relaxed)
    }
}

impl Heap {
    pub(super) fn new(number: usize) -> Heap {
        let slot = |_| ClassChunks {
            current: Cell::new(EmptyChunk::chunk()),
            partial: Cell::new(None),
            allocated: Counter::default(),
            freed: Counter::default(),
        };
        Heap {
            number,
            slots: std::array::from_fn(slot),
            spare: Cell::new(None),
            n_spare: Cell::new(0),
            returned: ReturnedBlocks::new(OwnerPresence::Present),
            n_misses: Counter::default(),
            n_returned: Counter::default(),
            n_chunks: Counter::default(),
            large_blocks: Counter::default(),
            large_bytes: Counter::default(),
        }
    }

    pub(super) fn slot(&self, class: Class) -> &ClassChunks {
        &self.slots[class.index()]
    }

    #[inline(always)]
    pub(super) fn pop(&self, class: Class) -> Option<NonNull<u8>> {
        let slot = self.slot(class);
        let chunk = slot.current.get();
        // SAFETY: a current chunk is there.
        let chunk = unsafe { chunk.as_ref() };
        let block = chunk.pop()?;
        chunk.countdown.set(chunk.countdown.get() + 1);
        slot.allocated.add(1);
        Some(block)
    }

    /// Takes back a block of this heap.
    ///
    /// # Safety
    ///
    /// The block is one of the chunk, which is one of this heap and class, and nobody uses it.
    #[inline(always)]
    pub(super) unsafe fn take_back(
        &self,
        at: NonNull<Chunk>,
        block: NonNull<IdleBlock>,
        class: Class,
    ) {
        // SAFETY: the caller says that the block is there, so its chunk is, too.
        let chunk = unsafe { at.as_ref() };
        // SAFETY: the caller says that it is one of this chunk.
        unsafe { chunk.push(block) };
        self.slot(class).freed.add(1);
        let countdown = chunk.countdown.get() - 1;
        chunk.countdown.set(countdown);
        if countdown == 0 {
            self.counted_down(at);
        }
    }

    /// Takes the blocks that other threads have returned, and says whether the heap has a thread.
    pub(super) fn collect(&self, owner: OwnerPresence) {
        let mut next = NonNull::new(self.returned.take(owner));
        while let Some(block) = next {
            // SAFETY: what was in the list is idle and ours now.
            let link = unsafe { &block.as_ref().next };
            // SAFETY: as above.
            next = NonNull::new(link.with(|next| unsafe { *next }));
            self.n_returned.add(1);
            let chunk = Chunk::of(block.cast());
            // SAFETY: the chunk of a block in use is there.
            let class = unsafe { chunk.as_ref() }.class();
            // SAFETY: a heap is given blocks of its own chunks only.
            unsafe { self.take_back(chunk, block, class) };
        }
    }

    pub(super) fn pop_or_refill(&self, class: Class) -> Option<NonNull<u8>> {
        if !self.returned.seems_empty() {
            self.collect(OwnerPresence::Present);
            if let Some(block) = self.pop(class) {
                return Some(block);
            }
        }
        self.n_misses.add(1);
        self.refill(class)?;
        self.pop(class)
    }

    /// Makes sure that the current chunk of a class has idle blocks.
    fn refill(&self, class: Class) -> Option<()> {
        let slot = self.slot(class);
        let current = slot.current.get();
        if current != EmptyChunk::chunk() {
            if self.cut(current) {
                return Some(());
            }
            // SAFETY: a current chunk is there.
            let full = unsafe { current.as_ref() };
            full.is_full.set(true);
            full.countdown.set(1);
            slot.current.set(EmptyChunk::chunk());
        }
        let chunk = match slot.partial.get() {
            Some(chunk) => {
                unlink(&slot.partial, chunk);
                chunk
            }
            None => self.take_spare(class)?,
        };
        // SAFETY: a chunk of ours is there.
        let header = unsafe { chunk.as_ref() };
        header.countdown.set(header.countdown.get() + 1);
        slot.current.set(chunk);
        if !header.has_idle() {
            self.cut(chunk);
        }
        Some(())
    }

    /// Cuts idle blocks off a chunk; returns false if there are none left.
    fn cut(&self, chunk: NonNull<Chunk>) -> bool {
        // SAFETY: the chunk is one of ours.
        unsafe { cut(chunk) > 0 }
    }

    /// Returns a chunk without blocks in use.
    fn take_spare(&self, class: Class) -> Option<NonNull<Chunk>> {
        if let Some(chunk) = self.spare.get() {
            unlink(&self.spare, chunk);
            self.n_spare.set(self.n_spare.get() - 1);
            // SAFETY: a spare chunk is there.
            unsafe { chunk.as_ref() }.recut(class);
            return Some(chunk);
        }
        let chunk = Chunk::allocate(self, class)?;
        self.n_chunks.add(1);
        Some(chunk)
    }

    /// Moves a chunk on to its next state when its countdown has reached zero: from full to
    /// partial, or from partial to spare.
    #[cold]
    #[inline(never)]
    fn counted_down(&self, at: NonNull<Chunk>) {
        // SAFETY: the chunk is one of ours.
        let chunk = unsafe { at.as_ref() };
        let slot = self.slot(chunk.class());
        if chunk.is_full.replace(false) {
            // A chunk has room for several blocks, so some are in use.
            chunk.countdown.set(chunk.n_blocks() - 1);
            link(&slot.partial, at);
            return;
        }
        unlink(&slot.partial, at);
        self.dispose(at);
    }

    /// Keeps a chunk without blocks in use, or releases it.
    fn dispose(&self, chunk: NonNull<Chunk>) {
        if self.n_spare.get() < MAX_SPARE {
            link(&self.spare, chunk);
            self.n_spare.set(self.n_spare.get() + 1);
            return;
        }
        self.release(chunk);
    }

    fn release(&self, chunk: NonNull<Chunk>) {
        self.n_chunks.add(1_u64.wrapping_neg());
        // SAFETY: the callers have taken it out of all lists, and none of its blocks is in use.
        unsafe { Chunk::release(chunk) };
    }

    pub(super) fn release_spare(&self) {
        while let Some(chunk) = self.spare.get() {
            unlink(&self.spare, chunk);
            self.release(chunk);
        }
        self.n_spare.set(0);
    }

    /// Leaves no chunk current, and releases those that nobody has blocks of.
    pub(super) fn close(&self) {
        for slot in &self.slots {
            let at = slot.current.replace(EmptyChunk::chunk());
            if at == EmptyChunk::chunk() {
                continue;
            }
            // SAFETY: a current chunk is there.
            let chunk = unsafe { at.as_ref() };
            let n_in_use = chunk.countdown.get() - 1;
            if n_in_use == chunk.n_blocks() {
                chunk.is_full.set(true);
                chunk.countdown.set(1);
                continue;
            }
            chunk.countdown.set(n_in_use);
            if n_in_use == 0 {
                self.release(at);
            } else {
                link(&slot.partial, at);
            }
        }
        self.release_spare();
    }
}

/// Puts a chunk at the head of a list.
fn link(head: &Cell<Option<NonNull<Chunk>>>, at: NonNull<Chunk>) {
    // SAFETY: the callers' chunks are there.
    let chunk = unsafe { at.as_ref() };
    let next = head.replace(Some(at));
    chunk.links.next.set(next);
    chunk.links.before.set(None);
    if let Some(next) = next {
        // SAFETY: chunks in lists are there.
        unsafe { next.as_ref() }.links.before.set(Some(at));
    }
}

/// Takes a chunk out of the list that it is in.
fn unlink(head: &Cell<Option<NonNull<Chunk>>>, at: NonNull<Chunk>) {
    // SAFETY: the callers' chunks are there.
    let chunk = unsafe { at.as_ref() };
    let (before, next) = (chunk.links.before.take(), chunk.links.next.take());
    match before {
        // SAFETY: chunks in lists are there.
        Some(before) => unsafe { before.as_ref() }.links.next.set(next),
        None => head.set(next),
    }
    if let Some(next) = next {
        // SAFETY: as above.
        unsafe { next.as_ref() }.links.before.set(before);
    }
}
