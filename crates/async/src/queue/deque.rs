//! A work-stealing deque: a worker's tasks, with one owner at one end and thieves at the other.
//!
//! The owner pushes and pops at the tail, last in first out; thieves take up to half from the
//! head, first in first out. The ring has a fixed size, and a push into a full ring hands the
//! item back.
//!
//! Three counters decide who may touch a slot. All of them only ever grow, and wrap.
//!
//! | Counter | Written by | Means |
//! |---|---|---|
//! | `pushed` | the owner | items pushed since the beginning |
//! | `taken` | owner and thieves, by compare and exchange | `pops`: items the owner popped; `head`: items thieves claimed |
//! | `freed` | the one thief that is reading | claimed items that have been read out |
//!
//! ```text
//!            freed          head             tail = pushed - pops
//!   --- free ---+-- claimed ---+---- items -----+--- free ---
//!               a thief reads   anybody may take  the owner writes
//! ```
//!
//! # Invariants
//!
//! * `freed <= head <= tail <= freed + capacity`.
//! * A slot in `[head, tail)` holds an item that was published by `pushed`.
//! * Slots in `[freed, head)` belong to one thief, which claimed them; nobody claims while
//!   `freed` and `head` differ, except that the owner may always pop.
//! * All other slots belong to the owner.
//!
//! # Why a claim is safe
//!
//! A thief reads `taken`, then `pushed`, then exchanges `taken`. If the exchange succeeds, no pop
//! and no other claim happened in between, so the items it counted are still there: pushes only
//! add. It reads the slots after that, which nobody writes until it has advanced `freed`.
//!
//! `pushed` grows by a read-modify-write, and [`Thief::has_items`] reads it by one: the two are
//! ordered, so that of a worker going to sleep and a push one always sees the other (see
//! [`sleep`](super::sleep)).

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// A value on cache lines of its own, two of them since processors fetch pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

struct Ring<T> {
    pushed: Padded<AtomicU32>,
    taken: Padded<AtomicU64>,
    freed: AtomicU32,
    // Invariant: the length is a power of two.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: items move between threads, so they must be `Send`; a slot is touched only by the
// thread that the counters give it to (see the module's invariants), so no `&T` is ever shared.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

/// The numbers of items removed at either end: the content of [`Ring::taken`].
#[derive(Clone, Copy)]
struct TakenCounts {
    pops: u32,
    head: u32,
}

impl TakenCounts {
    fn unpack(word: u64) -> TakenCounts {
        let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
        TakenCounts {
            head: u32::from_le_bytes([a, b, c, d]),
            pops: u32::from_le_bytes([e, f, g, h]),
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.pops) << 32 | u64::from(self.head)
    }

    /// Returns the number of items if `pushed` were pushed in all; negative is never true, only
    /// stale.
    fn len(self, pushed: u32) -> u32 {
        let len = pushed.wrapping_sub(self.pops).wrapping_sub(self.head);
        if len > u32::MAX / 2 { 0 } else { len }
    }
}

/// The result of an attempt to steal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Steal<T> {
    /// The deque was empty.
    Empty,
    /// Another thief was stealing; there may be more.
    Busy,
    /// The oldest item; `moved` more are in the thief's deque.
    Taken { item: T, moved: u32 },
}

/// The owner's end of a deque, which pushes and pops: not copyable, and not shared between threads.
pub(super) struct Owner<T> {
    ring: Arc<Ring<T>>,
    // An owner may move to another thread, but never be used by two at a time.
    not_sync: PhantomData<std::cell::Cell<()>>,
}

/// A thief's end of a deque, which steals.
pub(super) struct Thief<T> {
    ring: Arc<Ring<T>>,
}

/// Makes an empty deque for at least `capacity` items.
pub(super) fn deque<T>(capacity: u32) -> (Owner<T>, Thief<T>) {
    let slots = (0..capacity.next_power_of_two())
        .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
        .collect();
    let ring = Arc::new(Ring {
        pushed: Padded(AtomicU32::new(0)),
        taken: Padded(AtomicU64::new(0)),
        freed: AtomicU32::new(0),
        slots,
    });
    (
        Owner {
            ring: ring.clone(),
            not_sync: PhantomData,
        },
        Thief { ring },
    )
}

impl<T> Ring<T> {
    #[inline]
    fn slot(&self, index: u32) -> &UnsafeCell<MaybeUninit<T>> {
        let index = usize::try_from(index).expect("an index fits a pointer");
        &self.slots[index & (self.slots.len() - 1)]
    }

    fn capacity(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("made from a u32")
    }

    /// Moves the item out of the slot of `index`.
    ///
    /// # Safety
    ///
    /// The slot holds an item, and the counters give it to the calling thread.
    unsafe fn read(&self, index: u32) -> T {
        self.slot(index).with(|slot| {
            // SAFETY: the caller vouches for a live item that nobody else touches.
            let item = unsafe { slot.read() };
            // SAFETY: as above: slots are written whole, by `write`.
            unsafe { item.assume_init() }
        })
    }

    /// Moves an item into the slot of `index`.
    ///
    /// # Safety
    ///
    /// The slot is free, and the counters give it to the calling thread.
    unsafe fn write(&self, index: u32, item: T) {
        self.slot(index).with_mut(|slot| {
            // SAFETY: the caller vouches that nobody else touches the slot; it is a valid place
            // of the slice, and what it held has been moved out.
            unsafe { slot.write(MaybeUninit::new(item)) };
        });
    }

    /// Claims up to half of the items, at most `most`, for the calling thread.
    fn claim(&self, most: u32) -> Steal<ClaimedSlots<'_, T>> {
        // Ordering: pairs with the release in `pop`, so that `pushed` below is not older than
        // the pops; and in `claim`, so that `freed` is not older than the head.
        let word = self.taken.0.load(Ordering::Acquire);
        let taken = TakenCounts::unpack(word);
        // Ordering: pairs with the release in `ClaimedSlots::drop`: the next claim, and through it the
        // owner, come after the reads of the last one.
        if self.freed.load(Ordering::Acquire) != taken.head {
            return Steal::Busy;
        }
        // Ordering: pairs with the release in `push`: the items' bytes are visible.
        let len = taken.len(self.pushed.0.load(Ordering::Acquire));
        if len == 0 {
            return Steal::Empty;
        }
        let n = (len - len / 2).min(most);
        let next = TakenCounts {
            head: taken.head.wrapping_add(n),
            ..taken
        }
        .pack();
        if self
            .taken
            .0
            // Ordering: see the loads of `taken` here and in `pop`.
            .compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return Steal::Busy;
        }
        Steal::Taken {
            item: ClaimedSlots {
                ring: self,
                head: taken.head,
                n,
            },
            moved: n - 1,
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let mut taken = TakenCounts::unpack(self.taken.0.load(Ordering::Relaxed));
        while taken.len(self.pushed.0.load(Ordering::Relaxed)) > 0 {
            // SAFETY: nobody else has the ring, and `[head, tail)` holds items.
            drop(unsafe { self.read(taken.head) });
            taken.head = taken.head.wrapping_add(1);
        }
    }
}

/// The slots `[head, head + n)`, claimed by this thread and given back on drop.
struct ClaimedSlots<'a, T> {
    ring: &'a Ring<T>,
    head: u32,
    n: u32,
}

impl<T> ClaimedSlots<'_, T> {
    /// Moves all items out, the newest first.
    fn newest_first(self, mut each: impl FnMut(T)) {
        // `each` only stores the item: were it to panic, items left would leak, no more.
        for offset in (0..self.n).rev() {
            // SAFETY: the claim gives this thread the slots, each of them is read once, and
            // they hold items since they were below the tail.
            each(unsafe { self.ring.read(self.head.wrapping_add(offset)) });
        }
    }

    /// Moves all items out, the oldest first.
    fn oldest_first(self, mut each: impl FnMut(T)) {
        for offset in 0..self.n {
            // SAFETY: as in `newest_first`.
            each(unsafe { self.ring.read(self.head.wrapping_add(offset)) });
        }
    }
}

impl<T> Drop for ClaimedSlots<'_, T> {
    fn drop(&mut self) {
        // Ordering: pairs with the acquires of `freed` in `push` and `claim`: whoever sees the
        // slots free comes after the reads.
        self.ring
            .freed
            .store(self.head.wrapping_add(self.n), Ordering::Release);
    }
}

impl<T> Owner<T> {
    /// Returns `pushed` and `taken` as the owner sees them. Its pops are exact; the head may be
    /// stale.
    #[inline]
    fn counters(&self) -> (u32, TakenCounts) {
        // Ordering: only the owner writes `pushed` and the pops, and thieves' slots are told
        // apart by `freed` or by an exchange of `taken`.
        let pushed = self.ring.pushed.0.load(Ordering::Relaxed);
        (
            pushed,
            TakenCounts::unpack(self.ring.taken.0.load(Ordering::Relaxed)),
        )
    }

    /// Returns how many more items can be pushed now; never too high.
    pub(super) fn room(&self) -> u32 {
        let (pushed, taken) = self.counters();
        self.room_at(pushed, taken)
    }

    #[inline]
    fn room_at(&self, pushed: u32, taken: TakenCounts) -> u32 {
        // Ordering: pairs with the release in `ClaimedSlots::drop`: a slot that is seen free was read.
        let freed = self.ring.freed.load(Ordering::Acquire);
        let used = pushed.wrapping_sub(taken.pops).wrapping_sub(freed);
        self.ring.capacity() - used
    }

    /// Adds an item at the tail.
    ///
    /// # Errors
    ///
    /// Hands the item back if the ring is full.
    #[inline]
    pub(super) fn push(&self, item: T) -> Result<(), T> {
        let (pushed, taken) = self.counters();
        if self.room_at(pushed, taken) == 0 {
            return Err(item);
        }
        // SAFETY: the slot at the tail is outside of `[freed, tail)`, since there is room; so it
        // is free, and it is the owner's.
        unsafe { self.ring.write(pushed.wrapping_sub(taken.pops), item) };
        // Ordering: the release pairs with the acquire of `pushed` in `claim`. The acquire, and
        // that this is a read-modify-write, pairs with `Thief::has_items`.
        self.ring.pushed.0.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Adds items at the tail as long as there is room, and publishes them at once.
    pub(super) fn push_all(&self, items: &mut std::vec::IntoIter<T>) {
        let (pushed, taken) = self.counters();
        let room = usize::try_from(self.room_at(pushed, taken)).unwrap_or(usize::MAX);
        let mut n = 0_u32;
        for item in items.take(room) {
            let tail = pushed.wrapping_sub(taken.pops).wrapping_add(n);
            // SAFETY: as in `push`: the slots behind the tail are the owner's as far as there is
            // room.
            unsafe { self.ring.write(tail, item) };
            n += 1;
        }
        if n > 0 {
            // Ordering: as in `push`.
            self.ring.pushed.0.fetch_add(n, Ordering::AcqRel);
        }
    }

    /// Removes the item at the tail, which is the newest.
    #[inline]
    pub(super) fn pop(&self) -> Option<T> {
        let (pushed, mut taken) = self.counters();
        loop {
            if taken.len(pushed) == 0 {
                return None;
            }
            let next = TakenCounts {
                pops: taken.pops.wrapping_add(1),
                ..taken
            };
            // Ordering: the release pairs with the load of `taken` in `claim`. On success no
            // thief has claimed the slot, and the owner wrote it itself.
            let exchanged = self.ring.taken.0.compare_exchange(
                taken.pack(),
                next.pack(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => break,
                Err(word) => taken = TakenCounts::unpack(word),
            }
        }
        let tail = pushed.wrapping_sub(taken.pops);
        // SAFETY: the exchange took the newest item from `[head, tail)`; its slot is the owner's.
        Some(unsafe { self.ring.read(tail.wrapping_sub(1)) })
    }

    /// Removes the older half, oldest first: makes room in a full deque. Does nothing while a
    /// thief is at work.
    pub(super) fn shed(&self, each: impl FnMut(T)) {
        if let Steal::Taken { item: claim, .. } = self.ring.claim(u32::MAX) {
            claim.oldest_first(each);
        }
    }

    /// Removes the oldest item, unless a thief is at work.
    pub(super) fn pop_oldest(&self) -> Option<T> {
        let mut oldest = None;
        if let Steal::Taken { item: claim, .. } = self.ring.claim(1) {
            claim.oldest_first(|item| oldest = Some(item));
        }
        oldest
    }
}

impl<T> Thief<T> {
    /// Takes the older half: gives the oldest item, and puts the rest into `into` so that its
    /// owner pops them in their old order.
    pub(super) fn steal(&self, into: &Owner<T>) -> Steal<T> {
        if Arc::ptr_eq(&self.ring, &into.ring) {
            return Steal::Empty;
        }
        let claim = match self.ring.claim(into.room().saturating_add(1)) {
            Steal::Taken { item, .. } => item,
            Steal::Busy => return Steal::Busy,
            Steal::Empty => return Steal::Empty,
        };
        let moved = claim.n - 1;
        let mut oldest = None;
        claim.newest_first(|item| {
            if let Some(newer) = oldest.replace(item) {
                // There is room: only this thread fills `into`, and it was asked before.
                let pushed = into.push(newer);
                assert!(pushed.is_ok(), "the claim was bounded by the room");
            }
        });
        Steal::Taken {
            item: oldest.expect("a claim is never empty"),
            moved,
        }
    }

    /// Returns whether there are items. Never says no to an item that is there throughout, and of a
    /// push and a call of this one is ordered after the other.
    pub(super) fn has_items(&self) -> bool {
        // Ordering: pairs with the release in `pop`: `pushed` is not older than the pops.
        let taken = TakenCounts::unpack(self.ring.taken.0.load(Ordering::Acquire));
        // Ordering: a read-modify-write, as the push is. If the push comes first its item is
        // seen here; if not, the push acquires what this thread did before.
        let pushed = self.ring.pushed.0.fetch_add(0, Ordering::AcqRel);
        taken.len(pushed) > 0
    }

    /// Returns whether there seem to be items, without writing anything.
    pub(super) fn may_have_items(&self) -> bool {
        // Ordering: a hint.
        let taken = TakenCounts::unpack(self.ring.taken.0.load(Ordering::Relaxed));
        taken.len(self.ring.pushed.0.load(Ordering::Relaxed)) > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn owner_is_last_in_first_out_and_thief_first_in_first_out() {
        let (owner, thief) = deque::<u32>(8);
        let (other, _) = deque::<u32>(8);
        assert_eq!(thief.steal(&other), Steal::Empty);
        for item in 0..8 {
            owner.push(item).unwrap();
        }
        assert_eq!(owner.push(8), Err(8));
        assert_eq!(owner.pop(), Some(7));
        // Seven are left: four go, the oldest first.
        assert_eq!(thief.steal(&other), Steal::Taken { item: 0, moved: 3 });
        assert_eq!(
            [other.pop(), other.pop(), other.pop(), other.pop()],
            [Some(1), Some(2), Some(3), None]
        );
        assert_eq!(
            [owner.pop(), owner.pop(), owner.pop(), owner.pop()],
            [Some(6), Some(5), Some(4), None]
        );
        assert!(!thief.has_items());
    }

    #[test]
    fn items_pushed_together_stop_where_the_room_ends() {
        let (owner, thief) = deque::<u32>(4);
        let (other, _) = deque::<u32>(4);
        owner.push(0).unwrap();
        let mut items = vec![1, 2, 3, 4, 5].into_iter();
        owner.push_all(&mut items);
        assert_eq!(items.as_slice(), [4, 5]);
        assert_eq!(thief.steal(&other), Steal::Taken { item: 0, moved: 1 });
        owner.push_all(&mut items);
        assert_eq!(items.len(), 0);
        let left: Vec<u32> = std::iter::from_fn(|| owner.pop()).collect();
        assert_eq!((left, other.pop()), (vec![5, 4, 3, 2], Some(1)));
    }

    #[test]
    fn steal_is_bounded_by_the_room_of_the_thief() {
        let (owner, thief) = deque::<u32>(8);
        let (other, _) = deque::<u32>(2);
        (0..8).for_each(|item| owner.push(item).unwrap());
        other.push(100).unwrap();
        assert_eq!(thief.steal(&other), Steal::Taken { item: 0, moved: 1 });
        assert_eq!(other.room(), 0);
        assert_eq!(thief.steal(&other), Steal::Taken { item: 2, moved: 0 });
        assert_eq!(other.pop(), Some(1));
    }

    #[test]
    fn shedding_gives_the_older_half_in_order() {
        let (owner, _thief) = deque::<u32>(8);
        (0..8).for_each(|item| owner.push(item).unwrap());
        let mut shed = Vec::new();
        owner.shed(|item| shed.push(item));
        assert_eq!(shed, [0, 1, 2, 3]);
        assert_eq!(owner.pop_oldest(), Some(4));
        assert_eq!(owner.room(), 5);
    }

    #[test]
    fn items_left_are_dropped_once() {
        let held = Arc::new(());
        let (owner, thief) = deque(4);
        (0..3).for_each(|_| assert!(owner.push(held.clone()).is_ok()));
        drop(owner.pop());
        assert_eq!(Arc::strong_count(&held), 3);
        drop((owner, thief));
        assert_eq!(Arc::strong_count(&held), 1);
    }

    /// Random operations against a plain `VecDeque`, far enough for the ring to wrap.
    #[test]
    fn agrees_with_a_plain_deque() {
        let mut seed = 7u64;
        let mut random = move || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            seed >> 33
        };
        let (owner, thief) = deque(8);
        let (other, _) = deque(8);
        let (mut model, mut next) = (VecDeque::new(), 0u64);
        for _ in 0..20_000 {
            match random() % 4 {
                0 | 1 if model.len() < 8 => {
                    owner.push(next).unwrap();
                    model.push_back(next);
                    next += 1;
                }
                0 | 1 => assert_eq!(owner.push(next), Err(next)),
                2 => assert_eq!(owner.pop(), model.pop_back()),
                _ => {
                    let half = model.len().div_ceil(2);
                    let expected: Vec<_> = model.drain(..half).collect();
                    let mut got = Vec::new();
                    if let Steal::Taken { item, .. } = thief.steal(&other) {
                        got.push(item);
                    }
                    got.extend(std::iter::from_fn(|| other.pop()));
                    assert_eq!(got, expected);
                }
            }
        }
        assert_eq!(thief.may_have_items(), !model.is_empty());
    }
}
