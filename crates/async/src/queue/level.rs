//! Thread scopes: what the calling thread is running for single-threaded queues, and the tasks that only it can see.
//!
//! A thread that runs a line enters a *level*, with a batch of tasks. Tasks that these add wait on
//! the level, too, so that neither adding nor taking them needs a lock or an atomic exchange. They
//! go to the line when the level is left, when another thread waits for tasks, and before a task
//! that may wait.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::ptr::{self, NonNull};

use super::single::Line;
use super::tally::Lane;
use super::{LocalTask, Task};
use crate::sync::Arc;

thread_local! {
    /// The innermost level of the thread, or null.
    ///
    /// Invariant: a level that [`run`] has on its stack, further out than whoever reads this.
    static INNERMOST: Cell<*const Level<'static>> = const { Cell::new(ptr::null()) };
}

/// The tasks that a thread has for one line while it runs some of them, in a list that only this thread sees. Lives on
/// the stack of [`run`].
pub(super) struct Level<'a> {
    line: Arc<Line>,
    /// Borrowed for the length of one operation at a time, none of which calls anybody.
    tasks: UnsafeCell<Tasks>,
    /// Invariant: the counters of the line that this thread may write, which live as long as it.
    lane: NonNull<Lane>,
    owns_lane: bool,
    claimed_lane: bool,
    /// Tells whether the thread is to stop; `None` if it runs no task of the line, and only adds some.
    stops: Option<&'a dyn Fn() -> bool>,
    outer: *const Level<'static>,
}

struct Tasks {
    /// The rest of the batch, and behind it what this thread has added meanwhile.
    line: VecDeque<Task>,
    /// The number of tasks in the rest of the batch.
    n_batch: usize,
}

/// Runs `work` with a level that begins with a batch. What is left of that goes back to the front
/// of the line afterwards, and what was added goes to its end.
pub(super) fn run(
    line: &Arc<Line>,
    batch: VecDeque<Task>,
    stops: &dyn Fn() -> bool,
    work: impl FnOnce(&Level<'_>),
) {
    enter(line, batch, Some(stops), work);
}

/// Runs `work`, which is no task of the line, with a level for what it adds, unless there is one.
pub(super) fn run_here(line: &Arc<Line>, work: impl FnOnce()) {
    match levels(INNERMOST.get()).next() {
        Some(level) if level.is_of(line) => work(),
        _ => enter(line, VecDeque::new(), None, |_| work()),
    }
}

fn enter(
    line: &Arc<Line>,
    batch: VecDeque<Task>,
    stops: Option<&dyn Fn() -> bool>,
    work: impl FnOnce(&Level<'_>),
) {
    /// Leaves the level even if something panics.
    struct Leave<'a>(&'a Level<'a>);

    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.leave();
        }
    }

    let outer = INNERMOST.get();
    let inherits = levels(outer).any(|level| level.is_of(line) && level.owns_lane);
    let claimed_lane = !inherits && line.claim_lane();
    let owns_lane = inherits || claimed_lane;
    let level = Level {
        line: line.clone(),
        lane: NonNull::from(line.lane(owns_lane)),
        tasks: UnsafeCell::new(Tasks {
            n_batch: batch.len(),
            line: batch,
        }),
        owns_lane,
        claimed_lane,
        stops,
        outer,
    };
    INNERMOST.set((&raw const level).cast());
    let _leave = Leave(&level);
    work(&level);
}

/// Returns a level and all that are further out.
fn levels<'a>(mut at: *const Level<'static>) -> impl Iterator<Item = &'a Level<'a>> {
    std::iter::from_fn(move || {
        // SAFETY: by the invariant of `INNERMOST` it is null or on this thread's stack, further out
        // than the caller, and so are the levels that were there before it.
        let level: &'a Level<'a> = unsafe { at.cast::<Level<'a>>().as_ref() }?;
        at = level.outer;
        Some(level)
    })
}

impl Level<'_> {
    fn is_of(&self, line: &Line) -> bool {
        ptr::eq(Arc::as_ptr(&self.line), line)
    }

    /// Returns the counters of what this thread runs and adds.
    #[inline(always)]
    pub(super) fn lane(&self) -> &Lane {
        // SAFETY: by the field's invariant it lives as long as the line, which the level holds.
        unsafe { self.lane.as_ref() }
    }

    /// Gives `f` the tasks. It must not come here again.
    #[inline(always)]
    fn with_tasks<R>(&self, f: impl FnOnce(&mut Tasks) -> R) -> R {
        // SAFETY: only the thread whose level this is comes here, and what the callers in this file
        // do with the tasks calls nobody who could come here, too: it moves tasks, and neither runs
        // nor drops one.
        f(unsafe { &mut *self.tasks.get() })
    }

    /// Returns the next task: of the batch, or of a new batch that is all that is in line, with
    /// what the thread has added at its end.
    #[inline]
    pub(super) fn next(&self) -> Option<Task> {
        self.with_tasks(|tasks| {
            if tasks.n_batch == 0 {
                if self.line.may_have_tasks() {
                    self.line.take_before(&mut tasks.line);
                }
                tasks.n_batch = tasks.line.len();
            }
            let task = tasks.line.pop_front()?;
            tasks.n_batch -= 1;
            Some(task)
        })
    }

    /// Lets other threads see what this one has added.
    #[cold]
    fn publish(&self) {
        let mut added = self.with_tasks(|tasks| tasks.line.split_off(tasks.n_batch));
        // The batch stays here, and so may what these have to do with.
        added.iter_mut().for_each(Task::share);
        self.line.put_back(VecDeque::new(), added);
    }

    #[cold]
    fn leave(&self) {
        INNERMOST.set(self.outer);
        if self.claimed_lane {
            self.line.release_lane();
        }
        let (mut batch, mut added) = self.with_tasks(|tasks| {
            let added = tasks.line.split_off(tasks.n_batch);
            (std::mem::take(&mut tasks.line), added)
        });
        if levels(self.outer).any(|level| level.is_of(&self.line)) {
            // Not all that the thread has for the line goes back.
            batch.iter_mut().chain(&mut added).for_each(Task::share);
        }
        self.line.put_back(batch, added);
    }
}

/// Adds a task to the thread's innermost level, if that runs `line`; else gives it back.
#[inline(always)]
pub(super) fn add(line: &Line, task: Task) -> Result<(), Task> {
    let innermost = levels(INNERMOST.get()).next();
    let Some(level) = innermost.filter(|level| level.is_of(line)) else {
        return Err(task);
    };
    level.lane().add(1);
    level.with_tasks(|tasks| tasks.line.push_back(task));
    if line.has_waiting_threads() {
        level.publish();
    }
    Ok(())
}

/// Adds a local task as [`add`] does.
#[inline(always)]
pub(super) fn add_local<'c>(line: &Line, task: LocalTask<'c>) -> Result<(), LocalTask<'c>> {
    let innermost = levels(INNERMOST.get()).next();
    if !innermost.is_some_and(|level| level.is_of(line)) {
        return Err(task);
    }
    // SAFETY: it goes to the level of this thread. From there `publish` shares it; `leave` does if
    // another level of the line is left on this thread, and otherwise puts it back together with all
    // that the thread has, by `put_back`, which shares what can't be moved.
    let task = unsafe { task.into_unshared() };
    add(line, task).map_err(|_| unreachable!("the innermost level is of this line"))
}

/// Takes the next task of the thread's innermost level, if that runs `line`, and the task is a local one
/// of this owner.
#[inline]
pub(super) fn take_local(line: &Line, owner: *const ()) -> Option<LocalTask<'static>> {
    let level = levels(INNERMOST.get()).next()?;
    // It stops between any two tasks.
    if !level.is_of(line) || owner.is_null() || level.stops.is_none_or(|stops| stops()) {
        return None;
    }
    let task = level.with_tasks(|tasks| {
        let next = tasks.line.front()?;
        // What others have added comes between the batch and the rest.
        let is_next = tasks.n_batch > 0 || !line.may_have_tasks();
        if !is_next || next.owner() != owner {
            return None;
        }
        if tasks.n_batch == 0 {
            tasks.n_batch = tasks.line.len();
        }
        tasks.n_batch -= 1;
        tasks.line.pop_front()
    })?;
    // The task that takes this one is in flight in its place.
    level.lane().start();
    level.lane().finish();
    // SAFETY: only local tasks have an owner, and what is on a level may be run on its thread.
    Some(unsafe { LocalTask::of_unshared(task) })
}

/// Returns whether the thread is running tasks of `line`.
pub(super) fn is_running(line: &Line) -> bool {
    levels(INNERMOST.get()).any(|level| level.is_of(line) && level.stops.is_some())
}

/// Lets other threads see what this one has added to `line`.
pub(super) fn publish(line: &Line) {
    for level in levels(INNERMOST.get()).filter(|level| level.is_of(line)) {
        level.publish();
    }
}
