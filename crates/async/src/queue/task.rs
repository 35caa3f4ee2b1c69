//! [`Task`]: one closure, to be run once on some thread.
//!
//! A task is four words: a table of two functions and three words in which a small closure lies.
//! A closure that does not fit is boxed, and the box is the closure that lies there. So adding a
//! small task allocates nothing, and a task moves by copying 32 bytes.
//!
//! # Invariants
//!
//! * `storage` holds a live closure of the type that `table` was made for, until `run` or `drop`
//!   moves it out. Both consume the task, so it happens once.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};
use std::ptr;

/// Room for a closure that is stored in place.
type Storage = MaybeUninit<[usize; 3]>;

/// What can be done with a stored closure whose type has been forgotten.
struct Table {
    /// Moves the closure out and calls it.
    run: unsafe fn(*mut Storage),
    /// Drops the closure in place.
    drop: unsafe fn(*mut Storage),
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
    table: &'static Table,
    // Invariant: holds a live closure of the type that `table` belongs to.
    storage: Storage,
}

/// Tells whether an `F` can lie in a [`Storage`].
const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<Storage>() && align_of::<F>() <= align_of::<Storage>()
}

/// Carries the table of a closure type.
struct TableOf<F>(F);

impl<F: FnOnce()> TableOf<F> {
    const TABLE: &'static Table = &Table {
        run: run_in_place::<F>,
        drop: drop_in_place::<F>,
    };
}

impl Task {
    /// Wraps `closure`; allocates only if it is larger than three words.
    #[inline]
    pub fn new<F: FnOnce() + Send + 'static>(closure: F) -> Task {
        if fits::<F>() {
            return Task::in_place(closure);
        }
        Task::in_place(Box::new(closure))
    }

    #[inline]
    fn in_place<F: FnOnce() + Send + 'static>(closure: F) -> Task {
        const { assert!(size_of::<Task>() == 4 * size_of::<usize>()) };
        assert!(fits::<F>(), "only closures that fit are stored in place");
        let mut storage = Storage::uninit();
        // SAFETY: `fits` was asserted, so the storage is large and aligned enough for an `F`,
        // and it is a local that nobody else can see.
        unsafe { ptr::write(storage.as_mut_ptr().cast::<F>(), closure) };
        Task {
            table: TableOf::<F>::TABLE,
            storage,
        }
    }

    /// Runs the closure.
    #[inline]
    pub fn run(self) {
        let mut task = ManuallyDrop::new(self);
        let run = task.table.run;
        // SAFETY: by the field's invariant the storage holds a live closure of the table's type;
        // the task is consumed, and `ManuallyDrop` keeps `drop` from touching it again.
        unsafe { run(&raw mut task.storage) };
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let drop = self.table.drop;
        // SAFETY: by the field's invariant the storage holds a live closure of the table's type,
        // since `run` never lets a task get here.
        unsafe { drop(&raw mut self.storage) };
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

/// Moves the closure out of `storage` and calls it.
///
/// # Safety
///
/// `storage` holds a live `F`, which is gone afterwards, also if the call unwinds.
unsafe fn run_in_place<F: FnOnce()>(storage: *mut Storage) {
    // SAFETY: the caller hands over a live `F`; it is read once.
    let closure = unsafe { ptr::read(storage.cast::<F>()) };
    closure();
}

/// Drops the closure in `storage`.
///
/// # Safety
///
/// `storage` holds a live `F`, which is gone afterwards.
unsafe fn drop_in_place<F>(storage: *mut Storage) {
    // SAFETY: the caller hands over a live `F`; it is dropped once.
    unsafe { ptr::drop_in_place(storage.cast::<F>()) };
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
