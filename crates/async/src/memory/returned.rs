//! Blocks on their way back: a list that any thread pushes to and one thread takes from.
//!
//! One word holds the newest block, and whether the owner is gone. Pushing exchanges the word,
//! taking swaps it, so nobody waits, and a block is never seen twice.
//!
//! # Invariant
//!
//! A block is pushed by whoever frees it, and belongs to whoever takes the list from then on.
//! A push that finds the owner gone says so: that thread sees to it that somebody takes the list.

use std::ptr::{self, NonNull};

use crate::sync::{AtomicPtr, Ordering, UnsafeCell};

/// The header of an idle block.
pub(super) struct IdleBlock {
    pub(super) next: UnsafeCell<*mut IdleBlock>,
}

impl IdleBlock {
    /// Returns the header of a block whose successor is `next`.
    #[inline(always)]
    pub(super) fn before(next: *mut IdleBlock) -> IdleBlock {
        IdleBlock {
            next: UnsafeCell::new(next),
        }
    }
}

/// The presence of a list's owner, who takes blocks without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerPresence {
    /// A thread takes the list when it runs out of blocks.
    Present,
    /// Whoever pushes has to take it, or to have it taken.
    Gone,
}

/// The bit of the word that says [`OwnerPresence::Gone`]; blocks are 16-aligned.
const GONE: usize = 1;

impl OwnerPresence {
    fn empty_list(self) -> *mut IdleBlock {
        ptr::without_provenance_mut(match self {
            OwnerPresence::Present => 0,
            OwnerPresence::Gone => GONE,
        })
    }
}

/// The list of one owner.
pub(super) struct ReturnedBlocks(AtomicPtr<IdleBlock>);

impl ReturnedBlocks {
    /// Returns an empty list.
    pub(super) fn new(owner: OwnerPresence) -> ReturnedBlocks {
        ReturnedBlocks(AtomicPtr::new(owner.empty_list()))
    }

    /// Adds a block; returns whether there is an owner that will take it.
    ///
    /// # Safety
    ///
    /// `block` belongs to the caller, who gives it away, and has room for an [`IdleBlock`].
    pub(super) unsafe fn push(&self, block: NonNull<IdleBlock>) -> OwnerPresence {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let gone = seen.addr() & GONE;
            let next = seen.map_addr(|address| address & !GONE);
            // SAFETY: the block is the caller's until the exchange succeeds, and has the room.
            unsafe { block.write(IdleBlock::before(next)) };
            let word = block.as_ptr().map_addr(|address| address | gone);
            // Ordering: releases the link, and what was done with the block, to `take`.
            match self
                .0
                .compare_exchange_weak(seen, word, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) if gone != 0 => return OwnerPresence::Gone,
                Ok(_) => return OwnerPresence::Present,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the list, newest first, and says who looks after it from now on.
    pub(super) fn take(&self, owner: OwnerPresence) -> *mut IdleBlock {
        // Ordering: pairs with the release in `push`.
        let list = self.0.swap(owner.empty_list(), Ordering::Acquire);
        list.map_addr(|address| address & !GONE)
    }

    /// Returns whether the list seems to be empty.
    pub(super) fn seems_empty(&self) -> bool {
        // Ordering: a hint.
        self.0.load(Ordering::Relaxed).addr() & !GONE == 0
    }
}

/// Interleaving models.
#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::sync::{Arc, Mutex, thread};

    /// A list whose blocks are boxes.
    struct Boxes {
        list: ReturnedBlocks,
        /// The number of blocks that were taken. The lock stands for that of the registry.
        n_taken: Mutex<usize>,
    }

    impl Boxes {
        fn new(owner: OwnerPresence) -> Arc<Boxes> {
            Arc::new(Boxes {
                list: ReturnedBlocks::new(owner),
                n_taken: Mutex::new(0),
            })
        }

        fn push(&self) {
            let block = NonNull::from(Box::leak(Box::new(IdleBlock::before(ptr::null_mut()))));
            // SAFETY: the box is given away.
            if unsafe { self.list.push(block) } == OwnerPresence::Gone {
                self.take(OwnerPresence::Gone);
            }
        }

        fn take(&self, owner: OwnerPresence) {
            let mut n_taken = self.n_taken.lock().unwrap();
            let mut next = self.list.take(owner);
            while !next.is_null() {
                // SAFETY: what was taken is a box that belongs to this thread.
                let block = unsafe { Box::from_raw(next) };
                // SAFETY: nobody else has it.
                next = block.next.with(|next| unsafe { *next });
                *n_taken += 1;
            }
        }

        fn n_taken(&self) -> usize {
            *self.n_taken.lock().unwrap()
        }
    }

    #[test]
    fn loom_memory_push_push_take() {
        loom::model(|| {
            let boxes = Boxes::new(OwnerPresence::Present);
            let pushing =
                [boxes.clone(), boxes.clone()].map(|boxes| thread::spawn(move || boxes.push()));
            boxes.take(OwnerPresence::Present);
            pushing
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            boxes.take(OwnerPresence::Present);
            assert_eq!(boxes.n_taken(), 2);
        });
    }

    /// The owner leaves while two others give blocks back; nothing stays in the list.
    #[test]
    fn loom_memory_push_push_leave() {
        loom::model(|| {
            let boxes = Boxes::new(OwnerPresence::Present);
            let pushing =
                [boxes.clone(), boxes.clone()].map(|boxes| thread::spawn(move || boxes.push()));
            boxes.take(OwnerPresence::Gone);
            pushing
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            assert_eq!(boxes.n_taken(), 2);
        });
    }
}
