//! A pool of idle large blocks, above 32 KiB, by size class: freed ones wait there for new requests.
//!
//! A call of a model makes and drops the same large tensors again and again. Memory from the system is cleared page by
//! page when it is first touched, which costs more than many an operation does. So blocks that were given back are
//! kept for a while, idle, for the whole process. No limit counts them: allocators with limits stand above this.
//!
//! ```text
//!            allocate                     deallocate               not used for a while, or pressure
//!  system -------------> in use --------------------------> idle ----------------------------------> system
//!                           ^                                 |
//!                           +----------- allocate ------------+
//! ```
//!
//! All bytes of a block are initialised at any time: the system's are zeros, and whoever gives a block back has
//! initialised what it was lent ([`HostAllocator::deallocate_initialised`](super::HostAllocator)). So a block is lent
//! again as it is, and need not be cleared for somebody who writes it anyway.
//!
//! # Threads
//!
//! Idle blocks lie in [`N_SHELVES`] shelves, each behind a lock of its own. A thread puts what it frees on its own
//! shelf, whoever has allocated it, and looks there first, so that calls side by side don't meet, and find what is
//! still in their caches. Then it looks at the others' shelves, if any has a block of the class.
//!
//! # When blocks go back to the system
//!
//! * [`sweep`]: those that lay idle between two sweeps. There is one each [`PERIOD`] while blocks come and go.
//! * [`trim`]: all, when the system or a limit has refused memory, and whenever somebody asks.
//! * Those that come back while [`MOST_BYTES`] are idle.
//!
//! # Invariant
//!
//! A block on a shelf came from the system with the layout of its class, all its bytes are initialised, it begins with
//! an [`IdleLargeBlock`], and nobody else has it.

use std::alloc::{self, Layout};
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use super::class::MAX_BYTES as SMALL_BYTES;
use super::{len_bytes, thread};
use crate::sync::statistic::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// The alignment of all blocks.
const ALIGN: usize = 64;
/// The alignment of what the system lends. At least so many bytes lie in front of a block, the last of which hold its
/// distance from the start of what the system has lent.
const SYSTEM_ALIGN: usize = 16;
/// The largest size of a class.
const LARGEST: usize = 512 << 20;
/// Classes to each doubling.
const PER_DOUBLING: usize = 8;
/// The number of classes.
const N_CLASSES: usize = PER_DOUBLING * (LARGEST / SMALL_BYTES).ilog2() as usize;
/// The most bytes that lie idle.
const MOST_BYTES: usize = 512 << 20;
/// The number of shelves.
const N_SHELVES: usize = 8;
/// Time between two sweeps.
pub(super) const PERIOD: Duration = Duration::from_secs(1);
/// The number of blocks put on a shelf between two looks at the clock.
const LOOK_INTERVAL: u32 = 8;

/// A class of sizes.
///
/// Invariant: below [`N_CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LargeClass(usize);

impl LargeClass {
    /// Returns the smallest class whose blocks fit a layout, if the layout is large, but not too large.
    pub(super) fn of(layout: Layout) -> Option<LargeClass> {
        let size = layout.size();
        if size <= SMALL_BYTES || size > LARGEST || layout.align() > ALIGN {
            return None;
        }
        let doubling = ((size - 1) / SMALL_BYTES).ilog2() as usize;
        let step = (SMALL_BYTES << doubling) / PER_DOUBLING;
        // From 9 to 16 steps.
        let n_steps = size.div_ceil(step);
        Some(LargeClass(
            doubling * PER_DOUBLING + n_steps - PER_DOUBLING - 1,
        ))
    }

    /// Returns the size of a block, in bytes.
    pub(super) fn size_bytes(self) -> usize {
        let (doubling, more) = (self.0 / PER_DOUBLING, self.0 % PER_DOUBLING);
        (SMALL_BYTES << doubling) / PER_DOUBLING * (PER_DOUBLING + 1 + more)
    }

    fn layout(self) -> Layout {
        Layout::from_size_align(self.size_bytes(), ALIGN).expect("a class fits the memory")
    }

    /// Returns the layout that the system is asked for.
    ///
    /// For larger alignments than its own, the system clears memory that is zeros already, which takes as long as writing
    /// it. So it is asked for more bytes, and the block begins where one is aligned.
    fn system_layout(self) -> Layout {
        let size = ALIGN + self.size_bytes();
        Layout::from_size_align(size, SYSTEM_ALIGN).expect("a class fits the memory")
    }
}

/// The header of an idle block. No byte of it is padding.
#[repr(C)]
struct IdleLargeBlock {
    next: *mut IdleLargeBlock,
    /// The number of the block's class.
    class: usize,
}

/// The idle blocks that some threads have put there.
struct Shelf {
    // Invariant: lists of idle blocks of each class, the one that was put there last first, and their lengths.
    heads: [*mut IdleLargeBlock; N_CLASSES],
    lens: [u32; N_CLASSES],
    /// The shortest that each list was since the last sweep.
    least: [u32; N_CLASSES],
    n_put: u32,
}

// SAFETY: blocks that are idle belong to whoever has the shelf.
unsafe impl Send for Shelf {}

/// A shelf, in lines of the cache of its own.
#[repr(align(128))]
struct LockedShelf(Mutex<Shelf>);

static SHELVES: [LockedShelf; N_SHELVES] = [const {
    LockedShelf(Mutex::new(Shelf {
        heads: [ptr::null_mut(); N_CLASSES],
        lens: [0; N_CLASSES],
        least: [0; N_CLASSES],
        n_put: 0,
    }))
}; N_SHELVES];

/// The number of idle blocks of each class, by which empty shelves are not searched.
static N_IDLE: [AtomicUsize; N_CLASSES] = [const { AtomicUsize::new(0) }; N_CLASSES];

/// The number of idle bytes.
static IDLE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The time of the last sweep.
static LAST_SWEEP: Mutex<Option<Instant>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks.
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns how many bytes are idle.
pub(super) fn idle_bytes() -> usize {
    // Ordering: a statistic.
    IDLE_BYTES.load(Ordering::Relaxed)
}

/// Returns a block of a class, all of whose bytes are initialised, and whether all are zeros.
pub(super) fn allocate(class: LargeClass) -> Option<(NonNull<u8>, bool)> {
    let block = match take_idle(class) {
        Some(block) => Some((block, false)),
        None => from_system(class).map(|block| (block, true)),
    };
    if block.is_some() {
        thread::count_large(1, len_bytes(class.layout()));
    }
    block
}

/// Takes a block back.
///
/// # Safety
///
/// `block` came from [`allocate`] with this class, all bytes that were written since are initialised, and it is not
/// used again.
pub(super) unsafe fn free(block: NonNull<u8>, class: LargeClass) {
    let size = class.size_bytes();
    thread::count_large(
        1_u64.wrapping_neg(),
        len_bytes(class.layout()).wrapping_neg(),
    );
    // Ordering: a bound that need not be exact.
    let before = IDLE_BYTES.fetch_add(size, Ordering::Relaxed);
    if before + size > MOST_BYTES {
        IDLE_BYTES.fetch_sub(size, Ordering::Relaxed);
        // SAFETY: the caller says that it came from there, with this class.
        unsafe { to_system(block, class) };
        // What lies there may be of sizes that nobody asks for any more.
        sweep_if_due();
        return;
    }
    // Ordering: a hint.
    N_IDLE[class.0].fetch_add(1, Ordering::Relaxed);
    let mut shelf = lock(&own_shelf().0);
    // SAFETY: the caller gives the block away.
    unsafe { shelf.put(block.cast(), class) };
    shelf.n_put = shelf.n_put.wrapping_add(1);
    let is_time_to_look = shelf.n_put.is_multiple_of(LOOK_INTERVAL);
    drop(shelf);
    if is_time_to_look {
        sweep_if_due();
    }
    #[cfg(not(loom))]
    super::sweeper::wake();
}

/// Returns the shelf of the calling thread.
fn own_shelf() -> &'static LockedShelf {
    &SHELVES[thread::number() % N_SHELVES]
}

fn take_idle(class: LargeClass) -> Option<NonNull<u8>> {
    // Ordering: a hint. Whoever misses a block takes one from the system.
    if N_IDLE[class.0].load(Ordering::Relaxed) == 0 {
        return None;
    }
    let own = thread::number();
    (0..N_SHELVES).find_map(|index| lock(&SHELVES[(own + index) % N_SHELVES].0).take(class))
}

impl Shelf {
    /// # Safety
    ///
    /// The block is the caller's to give, and as the module's invariant says but for its beginning.
    unsafe fn put(&mut self, block: NonNull<IdleLargeBlock>, class: LargeClass) {
        let LargeClass(class) = class;
        let next = self.heads[class];
        // SAFETY: the block is the caller's, and large.
        unsafe { block.write(IdleLargeBlock { next, class }) };
        self.heads[class] = block.as_ptr();
        self.lens[class] += 1;
    }

    fn take(&mut self, class: LargeClass) -> Option<NonNull<u8>> {
        let index = class.0;
        let block = NonNull::new(self.heads[index])?;
        // SAFETY: an idle block begins so.
        self.heads[index] = unsafe { block.as_ref() }.next;
        self.lens[index] -= 1;
        self.least[index] = self.least[index].min(self.lens[index]);
        uncount(class);
        // SAFETY: the block is the caller's now. No address is left in it.
        unsafe { block.cast::<[usize; 2]>().write([0; 2]) };
        Some(block.cast())
    }

    /// Removes the blocks that were not used since the last sweep, or all if `is_all`; returns them as a list.
    fn take_unused(&mut self, is_all: bool) -> *mut IdleLargeBlock {
        let mut taken = ptr::null_mut();
        for index in 0..N_CLASSES {
            let n_kept = match is_all {
                true => 0,
                false => self.lens[index] - self.least[index],
            };
            // The last of the list have lain there for longest.
            let mut link = &raw mut self.heads[index];
            for _ in 0..n_kept {
                // SAFETY: the link leads to as many blocks as the list's length says, each of which begins so.
                let block = unsafe { *link };
                // SAFETY: as above.
                link = unsafe { &raw mut (*block).next };
            }
            // SAFETY: as above.
            let mut block = unsafe { link.replace(ptr::null_mut()) };
            while let Some(idle) = NonNull::new(block) {
                // SAFETY: as above.
                let next = unsafe { &raw mut (*idle.as_ptr()).next };
                // SAFETY: as above; the block is ours now.
                block = unsafe { next.replace(taken) };
                taken = idle.as_ptr();
                uncount(LargeClass(index));
            }
            self.lens[index] = n_kept;
            self.least[index] = n_kept;
        }
        taken
    }
}

/// Counts a block as idle no longer.
fn uncount(class: LargeClass) {
    // Ordering: hints.
    N_IDLE[class.0].fetch_sub(1, Ordering::Relaxed);
    IDLE_BYTES.fetch_sub(class.size_bytes(), Ordering::Relaxed);
}

/// Frees the blocks that were idle since the last sweep; returns their bytes.
pub(super) fn sweep() -> usize {
    release(false)
}

/// Gives all idle blocks back to the system; returns their bytes.
pub(super) fn trim() -> usize {
    release(true)
}

/// Sweeps if the last sweep was a [`PERIOD`] ago.
pub(super) fn sweep_if_due() {
    // Whoever holds it does what is to be done.
    let Ok(mut last) = LAST_SWEEP.try_lock() else {
        return;
    };
    let now = Instant::now();
    if last.is_some_and(|last| now.saturating_duration_since(last) < PERIOD) {
        return;
    }
    *last = Some(now);
    drop(last);
    sweep();
}

fn release(is_all: bool) -> usize {
    let mut n_bytes = 0;
    for shelf in &SHELVES {
        let mut block = lock(&shelf.0).take_unused(is_all);
        while let Some(idle) = NonNull::new(block) {
            // SAFETY: it was idle, and is ours now.
            let IdleLargeBlock { next, class } = unsafe { idle.read() };
            let class = LargeClass(class);
            // SAFETY: by the module's invariant.
            unsafe { to_system(idle.cast(), class) };
            n_bytes += class.size_bytes();
            block = next;
        }
    }
    n_bytes
}

#[cold]
#[inline(never)]
fn from_system(class: LargeClass) -> Option<NonNull<u8>> {
    // SAFETY: the size is not zero.
    let allocate = || NonNull::new(unsafe { alloc::alloc_zeroed(class.system_layout()) });
    let lent = super::or_after_trim(allocate)?;
    // From `SYSTEM_ALIGN` to `ALIGN`, as the start is a multiple of the former.
    let distance = ALIGN - lent.addr().get() % ALIGN;
    // SAFETY: at most `ALIGN` bytes lie in front of a block.
    let block = unsafe { lent.add(distance) };
    // SAFETY: at least `SYSTEM_ALIGN` bytes lie in front of a block, which is aligned.
    unsafe { distance_of(block).write(distance) };
    Some(block)
}

/// Returns where the distance of a block from the start of what the system has lent is written: right in front of it.
fn distance_of(block: NonNull<u8>) -> *mut usize {
    block.as_ptr().cast::<usize>().wrapping_sub(1)
}

/// # Safety
///
/// The block came from [`from_system`] with this class, and is not used again.
unsafe fn to_system(block: NonNull<u8>, class: LargeClass) {
    // SAFETY: `from_system` has written it there; the bytes in front of a block are nobody else's.
    let distance = unsafe { distance_of(block).read() };
    let lent = block.as_ptr().wrapping_sub(distance);
    // SAFETY: the caller says that the block came from there, so far behind what the system has lent.
    unsafe { alloc::dealloc(lent, class.system_layout()) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn class_of(size: usize) -> LargeClass {
        LargeClass::of(Layout::from_size_align(size, 64).unwrap()).unwrap()
    }

    #[test]
    fn each_large_size_has_the_smallest_class_that_fits() {
        let mut size = SMALL_BYTES + 1;
        for index in 0..N_CLASSES {
            let class = LargeClass(index);
            assert_eq!(
                (class_of(size), class_of(class.size_bytes())),
                (class, class)
            );
            assert!(class.size_bytes() - size < size / PER_DOUBLING, "{size}");
            size = class.size_bytes() + 1;
        }
        assert_eq!(size, LARGEST + 1);
        for (size, align) in [(size, 64), (SMALL_BYTES, 64), (1 << 20, 128)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            assert_eq!(LargeClass::of(layout), None);
        }
    }
}
