//! [`Task`]: one closure, to be run once on some thread.
//!
//! A task is two words, so that it moves in registers: a vtable of two functions, and a word in which
//! a closure of one word lies. A larger closure lies in a block of the free lists, and is never
//! moved: copying what was written a moment ago costs more than the block.
//!
//! # Local tasks
//!
//! A [`LocalTask`] works on something that its thread has to itself, with plain loads and stores, and
//! learns of it when that is to end: a queue *shares* it before another thread can get at it. To a
//! queue it is the same two words; its vtable has two more functions that do something.
//!
//! # Invariants
//!
//! * `word` holds what `vtable` was made for, a live closure or the address of one, until `run` or
//!   `drop` moves it out. Both consume the task, so it happens once.

use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};
use std::ptr::{self, NonNull};

use crate::memory::{BlockLayout, allocate_block, free_block};

/// Storage for a closure that is stored in place, or for the address of one.
type ClosureWord = MaybeUninit<*mut ()>;

/// The functions of a stored closure whose type is erased.
struct TaskVtable {
    /// The function that moves the closure out and calls it.
    run: unsafe fn(ClosureWord),
    /// The function that drops the closure.
    drop: unsafe fn(ClosureWord),
    /// The function that makes a local task one that other threads may run: see [`LocalWork::share`].
    share: unsafe fn(ClosureWord),
    /// The function that returns whether the work can go to another thread unshared: see [`LocalWork::can_move`].
    can_move: unsafe fn(ClosureWord) -> bool,
    /// The function that returns the owner of a local task: see [`LocalWork::owner`].
    owner: unsafe fn(ClosureWord) -> *const (),
    /// The family of a local task: see [`LocalWork::FAMILY`].
    family: &'static TaskFamily,
}

/// A set of local work types, which a module knows by a static of its own. The static's address tells the family from
/// all others. As long as no other module can name the static, only that module's types are of the family.
#[derive(Debug)]
pub struct TaskFamily {
    /// Statics without a size may share an address.
    _has_a_size: u8,
}

impl TaskFamily {
    /// Makes a family, which is to be a static.
    pub const fn new() -> TaskFamily {
        TaskFamily { _has_a_size: 0 }
    }
}

impl Default for TaskFamily {
    fn default() -> Self {
        TaskFamily::new()
    }
}

/// The family of closures, and of local works that nobody asks for.
static NO_FAMILY: TaskFamily = TaskFamily::new();

/// The work of a [`LocalTask`].
///
/// # Safety
///
/// A queue relies on this:
///
/// * after [`Self::share`] the work may be moved to any thread, and be run or dropped there;
/// * if [`Self::can_move`] says so of all local works that a thread has for one queue, they may all be
///   moved to another thread, by a hand-over that synchronises, and those that come to that thread by
///   the same hand-over may be run, shared or dropped there.
pub unsafe trait LocalWork: 'static {
    /// The family of the type, by which [`LocalTask::is_of`] tells it from types that others make. Default: none.
    const FAMILY: &'static TaskFamily = &NO_FAMILY;

    /// Does the work.
    fn run(work: LocalBlock<Self>)
    where
        Self: Sized;

    /// Makes the work one that other threads may run. May be called again.
    fn share(&mut self);

    /// Returns whether nothing but local works is at work on the owner. Calls nobody.
    fn can_move(&self) -> bool;

    /// Returns the address of the object that the work is about, or null if nobody may ask. Calls nobody. The owner
    /// doesn't say of what type the work is: whoever takes works of one owner from a queue
    /// ([`take_local_task`](super::ConcurrentWorkQueue::take_local_task)) asks [`LocalTask::is_of`].
    fn owner(&self) -> *const () {
        ptr::null()
    }
}

/// A local work in a block of the thread's free lists.
#[derive(Debug)]
pub struct LocalBlock<W> {
    // Invariant: a block with a `W`, which are this one's.
    work: NonNull<W>,
    _owns: PhantomData<W>,
}

impl<W> LocalBlock<W> {
    /// Puts a work into a block.
    #[inline]
    pub fn new(work: W) -> LocalBlock<W> {
        let block = allocate_block(BlockLayout::of::<W>()).cast::<W>();
        // SAFETY: the block is fresh, and has the layout of a `W`.
        unsafe { block.write(work) };
        LocalBlock {
            work: block,
            _owns: PhantomData,
        }
    }

    /// Borrows the work.
    #[inline]
    pub fn get(&self) -> &W {
        // SAFETY: the block is ours, with a `W`.
        unsafe { self.work.as_ref() }
    }

    /// Moves the work out, and gives the block back.
    #[inline]
    pub fn into_inner(self) -> W {
        let address = ClosureWord::new(self.into_raw().as_ptr().cast());
        // SAFETY: the block is ours, with a `W`.
        unsafe { take_from_block::<W>(address) }
    }

    /// Gives the address of the work away.
    #[inline]
    pub fn into_raw(self) -> NonNull<W> {
        ManuallyDrop::new(self).work
    }

    /// Returns the block at an address that [`Self::into_raw`] returned.
    ///
    /// # Safety
    ///
    /// It did, and nobody took it back before.
    #[inline]
    pub unsafe fn from_raw(work: NonNull<W>) -> LocalBlock<W> {
        LocalBlock {
            work,
            _owns: PhantomData,
        }
    }
}

impl<W> Drop for LocalBlock<W> {
    fn drop(&mut self) {
        // SAFETY: the block is ours, with a `W`, and is not used again.
        drop(unsafe { take_from_block::<W>(ClosureWord::new(self.work.as_ptr().cast())) });
    }
}

/// A [`Task`] that is confined to its thread until it is shared.
///
/// A queue gets it for the length of a call: until that returns it is run, dropped, shared, or handed to
/// the queue behind. Were it kept, it could stay behind when others that work on the same thing go to
/// another thread.
pub struct LocalTask<'c> {
    task: Task,
    /// Neither `Send` nor `Sync`, and not kept.
    confined: PhantomData<(*const (), &'c ())>,
}

/// A closure to be run once, on any thread.
///
/// Dropping a task without running it drops what the closure captured.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use tfrt_async::queue::Task;
///
/// let (sender, receiver) = channel();
/// Task::new(move || sender.send(42).unwrap()).run();
/// assert_eq!(receiver.recv(), Ok(42));
/// ```
pub struct Task {
    vtable: &'static TaskVtable,
    // Invariant: holds what `vtable` belongs to.
    word: ClosureWord,
}

// SAFETY: a task is made of closures that are `Send`, or of local work: then it is inside of a
// `LocalTask`, was shared, or is where `LocalTask::into_unshared` allows.
unsafe impl Send for Task {}
// SAFETY: nothing can be done with a shared task.
unsafe impl Sync for Task {}

/// Returns whether an `F` can lie in a [`ClosureWord`].
const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<ClosureWord>() && align_of::<F>() <= align_of::<ClosureWord>()
}

/// A holder of the function vtable of a closure type.
struct VtableOf<F>(F);

impl<F: FnOnce()> VtableOf<F> {
    const VTABLE: &'static TaskVtable = if fits::<F>() {
        &TaskVtable {
            run: run_in_place::<F>,
            drop: drop_in_place::<F>,
            share: |_| (),
            can_move: |_| true,
            owner: |_| ptr::null(),
            family: &NO_FAMILY,
        }
    } else {
        &TaskVtable {
            run: run_in_block::<F>,
            drop: drop_in_block::<F>,
            share: |_| (),
            can_move: |_| true,
            owner: |_| ptr::null(),
            family: &NO_FAMILY,
        }
    };
}

/// A holder of the function vtable of a type of local work.
struct LocalVtableOf<W>(W);

impl<W: LocalWork> LocalVtableOf<W> {
    const VTABLE: &'static TaskVtable = &TaskVtable {
        run: run_local::<W>,
        drop: drop_in_block::<W>,
        share: share_local::<W>,
        can_move: can_move_local::<W>,
        owner: owner_of_local::<W>,
        family: W::FAMILY,
    };
}

impl LocalTask<'static> {
    /// Wraps `work`, which takes a block of the thread's free lists.
    #[inline]
    pub fn new<W: LocalWork>(work: W) -> Self {
        LocalTask::of_block(LocalBlock::new(work))
    }

    /// Wraps work that lies in a block.
    #[inline]
    pub fn of_block<W: LocalWork>(work: LocalBlock<W>) -> Self {
        let task = Task {
            vtable: LocalVtableOf::<W>::VTABLE,
            word: ClosureWord::new(work.into_raw().as_ptr().cast()),
        };
        LocalTask {
            task,
            confined: PhantomData,
        }
    }
}

impl LocalTask<'_> {
    /// Does the work.
    #[inline]
    pub fn run(self) {
        self.task.run();
    }

    /// Returns the task as one that any thread may run.
    pub fn into_shared(mut self) -> Task {
        self.task.share();
        self.task
    }

    /// Returns the address of the work, for [`LocalBlock::from_raw`].
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        let task = ManuallyDrop::new(self.task);
        // SAFETY: a local task has the address of its block.
        let address = unsafe { task.word.assume_init() };
        // SAFETY: that is not null.
        unsafe { NonNull::new_unchecked(address).cast() }
    }

    /// Returns a task as a local one, which it was before.
    ///
    /// # Safety
    ///
    /// It is one still, on the thread where it may be run.
    #[inline]
    pub(super) unsafe fn of_unshared(task: Task) -> Self {
        LocalTask {
            task,
            confined: PhantomData,
        }
    }

    /// Returns the address of the object that the work is about: see [`LocalWork::owner`].
    #[inline]
    pub fn owner(&self) -> *const () {
        self.task.owner()
    }

    /// Returns whether the work is of a type of this family, and about `owner`.
    #[inline]
    pub fn is_of(&self, family: &'static TaskFamily, owner: *const ()) -> bool {
        ptr::eq(self.task.vtable.family, family) && self.owner() == owner
    }

    /// Returns the task without sharing it.
    ///
    /// # Safety
    ///
    /// It goes to another thread only if it was shared; or, if `can_move` says so of all that the
    /// thread has for one queue, together with these.
    #[inline]
    pub(super) unsafe fn into_unshared(self) -> Task {
        self.task
    }
}

impl fmt::Debug for LocalTask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalTask")
    }
}

impl Task {
    /// Wraps `closure`. One that is larger than a word takes a block of the thread's free lists.
    #[inline]
    pub fn new<F: FnOnce() + Send + 'static>(closure: F) -> Task {
        let mut word = ClosureWord::uninit();
        if fits::<F>() {
            // SAFETY: the word is large and aligned enough for an `F`, and a local that nobody else
            // can see.
            unsafe { word.as_mut_ptr().cast::<F>().write(closure) };
        } else {
            let block = allocate_block(BlockLayout::of::<F>()).cast::<F>();
            // SAFETY: the block is fresh, and has the layout of an `F`.
            unsafe { block.write(closure) };
            word.write(block.as_ptr().cast());
        }
        Task {
            vtable: VtableOf::<F>::VTABLE,
            word,
        }
    }

    /// Runs the closure.
    #[inline]
    pub fn run(self) {
        #[cfg(debug_assertions)]
        crate::accounting::register_thread();
        let task = ManuallyDrop::new(self);
        // SAFETY: by the field's invariant the word holds what the vtable belongs to; the task is
        // consumed, and `ManuallyDrop` keeps `drop` from touching it again.
        unsafe { (task.vtable.run)(task.word) };
    }

    /// Makes the task one that any thread may run, if it was a local one.
    #[inline]
    pub(super) fn share(&mut self) {
        // SAFETY: by the field's invariant the word holds what the vtable belongs to.
        unsafe { (self.vtable.share)(self.word) };
    }

    /// Returns the owner of a local task; null for other tasks.
    #[inline]
    pub(super) fn owner(&self) -> *const () {
        // SAFETY: by the field's invariant the word holds what the vtable belongs to.
        unsafe { (self.vtable.owner)(self.word) }
    }

    /// Returns whether the work can go to another thread unshared: see [`LocalWork::can_move`].
    #[inline]
    pub(super) fn can_move(&self) -> bool {
        // SAFETY: by the field's invariant the word holds what the vtable belongs to.
        unsafe { (self.vtable.can_move)(self.word) }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: by the field's invariant the word holds what the vtable belongs to, since `run`
        // never lets a task get here.
        unsafe { (self.vtable.drop)(self.word) };
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

/// Moves the closure out of a word.
///
/// # Safety
///
/// `word` holds a live `F`, which is gone afterwards.
#[inline(always)]
unsafe fn take_from_place<F>(word: ClosureWord) -> F {
    // SAFETY: the caller hands over a live `F`; it is read once.
    unsafe { ptr::read(word.as_ptr().cast::<F>()) }
}

/// Moves the closure out of its block, and gives that back.
///
/// # Safety
///
/// `word` holds the address of a block that [`Task::new`] has filled with an `F`, which is gone
/// afterwards.
#[inline(always)]
unsafe fn take_from_block<F>(word: ClosureWord) -> F {
    // SAFETY: the caller says that an address is there.
    let address = unsafe { word.assume_init() }.cast::<F>();
    // SAFETY: a block's address is not null.
    let block = unsafe { NonNull::new_unchecked(address) };
    // SAFETY: the caller hands over a live `F`; it is read once.
    let closure = unsafe { block.read() };
    // SAFETY: the block was allocated as that of an `F`, and holds nothing any more.
    unsafe { free_block(block.cast(), BlockLayout::of::<F>()) };
    closure
}

/// Calls a closure that lies in the word.
///
/// # Safety
///
/// See [`take_from_place`].
unsafe fn run_in_place<F: FnOnce()>(word: ClosureWord) {
    // SAFETY: the caller's promise is the same.
    let closure = unsafe { take_from_place::<F>(word) };
    closure();
}

/// Drops a closure that lies in the word.
///
/// # Safety
///
/// See [`take_from_place`].
unsafe fn drop_in_place<F>(word: ClosureWord) {
    // SAFETY: the caller's promise is the same.
    drop(unsafe { take_from_place::<F>(word) });
}

/// Calls a closure that lies in a block.
///
/// # Safety
///
/// See [`take_from_block`].
unsafe fn run_in_block<F: FnOnce()>(word: ClosureWord) {
    // SAFETY: the caller's promise is the same.
    let closure = unsafe { take_from_block::<F>(word) };
    closure();
}

/// Drops a closure that lies in a block.
///
/// # Safety
///
/// See [`take_from_block`].
unsafe fn drop_in_block<F>(word: ClosureWord) {
    // SAFETY: the caller's promise is the same.
    drop(unsafe { take_from_block::<F>(word) });
}

/// Does a local work.
///
/// # Safety
///
/// See [`take_from_block`].
unsafe fn run_local<W: LocalWork>(word: ClosureWord) {
    // SAFETY: the caller's promise is the same.
    let address = unsafe { word.assume_init() }.cast::<W>();
    // SAFETY: a block's address is not null.
    let address = unsafe { NonNull::new_unchecked(address) };
    // SAFETY: the caller hands over the block and the work.
    W::run(unsafe { LocalBlock::from_raw(address) });
}

/// Returns the owner of a local work.
///
/// # Safety
///
/// See [`share_local`].
unsafe fn owner_of_local<W: LocalWork>(word: ClosureWord) -> *const () {
    // SAFETY: the caller says that an address is there.
    let address = unsafe { word.assume_init() }.cast::<W>();
    // SAFETY: it is that of a `W` that nobody else is using.
    unsafe { &*address }.owner()
}

/// Shares a local work.
///
/// # Safety
///
/// `word` holds the address of a block with a `W` that nobody else is using.
unsafe fn share_local<W: LocalWork>(word: ClosureWord) {
    // SAFETY: the caller says that an address is there.
    let address = unsafe { word.assume_init() }.cast::<W>();
    // SAFETY: it is that of a `W` that nobody else is using.
    unsafe { &mut *address }.share();
}

/// Returns whether a local work can move.
///
/// # Safety
///
/// See [`share_local`].
unsafe fn can_move_local<W: LocalWork>(word: ClosureWord) -> bool {
    // SAFETY: the caller says that an address is there.
    let address = unsafe { word.assume_init() }.cast::<W>();
    // SAFETY: it is that of a `W` that nobody else is using.
    unsafe { &*address }.can_move()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn small_and_large_closures_run_once_and_drop_what_they_hold() {
        let held = Arc::new(());
        let (sender, receiver) = channel();
        let (small, large) = (held.clone(), [held.clone(), held.clone(), held.clone()]);
        let padded = ([1u64; 8], held.clone());
        let ran = sender.clone();
        let tasks = [
            Task::new(move || {
                let _small = small;
            }),
            Task::new(move || ran.send(large.len()).unwrap()),
            Task::new(move || {
                let whole = &padded;
                sender.send(whole.0.len()).unwrap();
            }),
        ];
        assert_eq!(Arc::strong_count(&held), 6);
        tasks.into_iter().for_each(Task::run);
        assert_eq!(Arc::strong_count(&held), 1);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [3, 8]);
    }

    #[test]
    fn dropped_unrun_drops_what_it_holds() {
        let held = Arc::new(());
        let (small, large) = (held.clone(), ([0u64; 9], held.clone()));
        let small = Task::new(move || drop(small));
        let large = Task::new(move || drop(large));
        assert_eq!(Arc::strong_count(&held), 3);
        drop((small, large));
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn panicking_closure_is_not_dropped_twice() {
        let held = Arc::new(());
        let inside = held.clone();
        let task = Task::new(move || {
            let _inside = inside;
            std::panic::resume_unwind(Box::new("expected"));
        });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.run())).is_err());
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn overaligned_closure_is_boxed() {
        #[repr(align(64))]
        struct Aligned(u8);
        let aligned = Aligned(7);
        let (sender, receiver) = channel();
        let cell = Cell::new(0);
        Task::new(move || {
            let address = &raw const aligned;
            cell.set(aligned.0);
            sender.send((address.addr() % 64, cell.get())).unwrap();
        })
        .run();
        assert_eq!(receiver.recv(), Ok((0, 7)));
    }
}
