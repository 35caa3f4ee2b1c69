//! [`TABLE`]: all places, in chunks that are made as they are wanted and stay for good; free ones are kept by thread.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::place::Place;

/// Places of a chunk.
const CHUNK: u32 = 1 << 8;
/// The most chunks: 16 million objects.
const MAX_CHUNKS: usize = 1 << 16;

/// All objects that plugins hold.
pub(super) struct Table {
    /// The first places of the chunks, which are made in this order and stay for good; null for one that is to come.
    /// Invariant: a chunk has [`CHUNK`] places.
    chunks: [AtomicPtr<Place>; MAX_CHUNKS],
    free: Mutex<Free>,
}

/// Places without an object, of no thread.
struct Free {
    places: Vec<u32>,
    /// The number of places that were ever used.
    n_used: u32,
}

pub(super) static TABLE: Table = Table {
    chunks: [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CHUNKS],
    free: Mutex::new(Free {
        places: Vec::new(),
        n_used: 0,
    }),
};

/// The number of free places that a thread takes, or gives back, at once.
const BATCH: usize = 64;

/// The most free places that a thread keeps.
const MAX_OWN: usize = 2 * BATCH;

/// Free places of a thread, which all may have when it ends.
struct OwnFree {
    places: [Cell<u32>; MAX_OWN],
    len: Cell<usize>,
}

impl OwnFree {
    #[inline]
    fn pop(&self) -> Option<u32> {
        let len = self.len.get().checked_sub(1)?;
        self.len.set(len);
        Some(self.places.get(len)?.get())
    }

    /// Keeps a place, unless there are too many.
    #[inline]
    fn push(&self, index: u32) -> bool {
        let len = self.len.get();
        let Some(place) = self.places.get(len) else {
            return false;
        };
        place.set(index);
        self.len.set(len + 1);
        true
    }

    /// Takes the places above the first `n`.
    fn split_off(&self, n: usize) -> Vec<u32> {
        let places = self.places.get(n..self.len.get()).unwrap_or_default();
        self.len.set(n.min(self.len.get()));
        places.iter().map(Cell::get).collect()
    }
}

thread_local! {
    /// The number of objects that were made on this thread, less those that a plugin has deleted on it.
    pub(super) static N_MADE: Cell<i64> = const { Cell::new(0) };
}

/// Runs a plugin's code, and returns with its result how many objects it has made on this thread and not deleted.
#[inline]
pub fn counted<R>(run: impl FnOnce() -> R) -> (R, i64) {
    let before = N_MADE.get();
    let result = run();
    (result, N_MADE.get() - before)
}

impl Drop for OwnFree {
    fn drop(&mut self) {
        lock(&TABLE.free).places.append(&mut self.split_off(0));
    }
}

thread_local! {
    static OWN_FREE: OwnFree = const {
        OwnFree {
            places: [const { Cell::new(0) }; MAX_OWN],
            len: Cell::new(0),
        }
    };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    #[inline(always)]
    pub(super) fn place(&self, index: u32) -> Option<&Place> {
        let first = self.chunks.get((index / CHUNK) as usize)?;
        let first = first.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: by the invariant the chunk has more places than this number.
        let place = unsafe { first.add((index % CHUNK) as usize) };
        // SAFETY: it is one of them, and they stay for good.
        Some(unsafe { &*place })
    }

    /// Returns a place for a new object, if there are not too many.
    #[inline(always)]
    pub(super) fn take_place(&self) -> Option<u32> {
        match OWN_FREE.try_with(OwnFree::pop) {
            Ok(Some(place)) => Some(place),
            _ => self.take_common(),
        }
    }

    /// Returns a place of no thread, and leaves the thread more of them, unless it ends.
    #[cold]
    #[inline(never)]
    fn take_common(&self) -> Option<u32> {
        let mut free = lock(&self.free);
        let only = self.next(&mut free)?;
        let _ends = OWN_FREE.try_with(|own| {
            for _ in 1..BATCH {
                let Some(index) = self.next(&mut free) else {
                    break;
                };
                own.push(index);
            }
        });
        Some(only)
    }

    /// Returns one of the free places, or else one that was never used.
    fn next(&self, free: &mut Free) -> Option<u32> {
        if let Some(index) = free.places.pop() {
            return Some(index);
        }
        let index = free.n_used;
        let chunk = self.chunks.get((index / CHUNK) as usize)?;
        // Who has the lock of the free places is the only one to make chunks.
        if chunk.load(Ordering::Relaxed).is_null() {
            let places: Box<[Place]> = (0..CHUNK).map(|_| Place::default()).collect();
            let first = Box::leak(places).as_mut_ptr();
            chunk.store(first, Ordering::Release);
        }
        free.n_used += 1;
        Some(index)
    }

    /// Takes a place back that is empty.
    #[inline(always)]
    pub(super) fn free_place(&self, index: u32) {
        if !OWN_FREE.try_with(|own| own.push(index)).unwrap_or(false) {
            self.free_common(index);
        }
    }

    /// Takes a place back that the thread has no room for, and some of its own.
    #[cold]
    #[inline(never)]
    fn free_common(&self, index: u32) {
        let others = OWN_FREE.try_with(|own| own.split_off(BATCH));
        let mut free = lock(&self.free);
        free.places.push(index);
        free.places.extend(others.unwrap_or_default());
    }
}

/// Returns the number of objects that plugins hold.
pub fn n_held() -> usize {
    let n_used = lock(&TABLE.free).n_used;
    let places = (0..n_used).filter_map(|index| TABLE.place(index));
    places.filter(|place| place.found().kind() != 0).count()
}
