//! Thread scopes: what the calling thread is running for single-threaded queues, and the tasks that only it can see.
//!
//! A thread that runs a line enters a *scope*, with a batch of tasks. Tasks that these add wait on
//! the scope, too, so that neither adding nor taking them needs a lock or an atomic exchange. They
//! go to the line when the scope is left, when another thread waits for tasks, and before a task
//! that may wait.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::ptr::{self, NonNull};

use super::single::TaskLine;
use super::task_counters::WorkerCounters;
use super::{LocalTask, Task};
use crate::sync::Arc;

thread_local! {
    /// The innermost scope of the thread, or null.
    ///
    /// Invariant: a scope that [`run`] has on its stack, further out than whoever reads this.
    static INNERMOST: Cell<*const ThreadScope<'static>> = const { Cell::new(ptr::null()) };
}

/// The tasks that a thread has for one line while it runs some of them, in a list that only this thread sees. Lives on
/// the stack of [`run`].
pub(super) struct ThreadScope<'a> {
    line: Arc<TaskLine>,
    /// Borrowed for the length of one operation at a time, none of which calls anybody.
    tasks: UnsafeCell<Tasks>,
    /// Invariant: the counters of the line that this thread may write, which live as long as it.
    counters: NonNull<WorkerCounters>,
    owns_counters: bool,
    claimed_counters: bool,
    /// The function that returns whether the thread is to stop; `None` if it runs no task of the line, and only adds
    /// some.
    stops: Option<&'a dyn Fn() -> bool>,
    outer: *const ThreadScope<'static>,
}

struct Tasks {
    /// The rest of the batch, and behind it what this thread has added meanwhile.
    line: VecDeque<Task>,
    /// The number of tasks in the rest of the batch.
    n_batch: usize,
}

/// Runs `work` with a scope that begins with a batch. What is left of that goes back to the front
/// of the line afterwards, and what was added goes to its end.
pub(super) fn run(
    line: &Arc<TaskLine>,
    batch: VecDeque<Task>,
    stops: &dyn Fn() -> bool,
    work: impl FnOnce(&ThreadScope<'_>),
) {
    enter(line, batch, Some(stops), work);
}

/// Runs `work`, which is no task of the line, with a scope for what it adds, unless there is one.
pub(super) fn run_here(line: &Arc<TaskLine>, work: impl FnOnce()) {
    match scopes(INNERMOST.get()).next() {
        Some(scope) if scope.is_of(line) => work(),
        _ => enter(line, VecDeque::new(), None, |_| work()),
    }
}

fn enter(
    line: &Arc<TaskLine>,
    batch: VecDeque<Task>,
    stops: Option<&dyn Fn() -> bool>,
    work: impl FnOnce(&ThreadScope<'_>),
) {
    /// Leaves the scope even if something panics.
    struct Leave<'a>(&'a ThreadScope<'a>);

    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.leave();
        }
    }

    let outer = INNERMOST.get();
    let inherits = scopes(outer).any(|scope| scope.is_of(line) && scope.owns_counters);
    let claimed_counters = !inherits && line.claim_counters();
    let owns_counters = inherits || claimed_counters;
    let scope = ThreadScope {
        line: line.clone(),
        counters: NonNull::from(line.counters(owns_counters)),
        tasks: UnsafeCell::new(Tasks {
            n_batch: batch.len(),
            line: batch,
        }),
        owns_counters,
        claimed_counters,
        stops,
        outer,
    };
    INNERMOST.set((&raw const scope).cast());
    let _leave = Leave(&scope);
    work(&scope);
}

/// Returns a scope and all that are further out.
fn scopes<'a>(mut at: *const ThreadScope<'static>) -> impl Iterator<Item = &'a ThreadScope<'a>> {
    std::iter::from_fn(move || {
        // SAFETY: by the invariant of `INNERMOST` it is null or on this thread's stack, further out
        // than the caller, and so are the scopes that were there before it.
        let scope: &'a ThreadScope<'a> = unsafe { at.cast::<ThreadScope<'a>>().as_ref() }?;
        at = scope.outer;
        Some(scope)
    })
}

impl ThreadScope<'_> {
    fn is_of(&self, line: &TaskLine) -> bool {
        ptr::eq(Arc::as_ptr(&self.line), line)
    }

    /// Returns the counters of what this thread runs and adds.
    #[inline(always)]
    pub(super) fn counters(&self) -> &WorkerCounters {
        // SAFETY: by the field's invariant it lives as long as the line, which the scope holds.
        unsafe { self.counters.as_ref() }
    }

    /// Gives `f` the tasks. It must not come here again.
    #[inline(always)]
    fn with_tasks<R>(&self, f: impl FnOnce(&mut Tasks) -> R) -> R {
        // SAFETY: only the thread whose scope this is comes here, and what the callers in this file
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
        if self.claimed_counters {
            self.line.release_counters();
        }
        let (mut batch, mut added) = self.with_tasks(|tasks| {
            let added = tasks.line.split_off(tasks.n_batch);
            (std::mem::take(&mut tasks.line), added)
        });
        if scopes(self.outer).any(|scope| scope.is_of(&self.line)) {
            // Not all that the thread has for the line goes back.
            batch.iter_mut().chain(&mut added).for_each(Task::share);
        }
        self.line.put_back(batch, added);
    }
}

/// Adds a task to the thread's innermost scope, if that runs `line`; else gives it back.
#[inline(always)]
pub(super) fn add(line: &TaskLine, task: Task) -> Result<(), Task> {
    let innermost = scopes(INNERMOST.get()).next();
    let Some(scope) = innermost.filter(|scope| scope.is_of(line)) else {
        return Err(task);
    };
    scope.counters().add(1);
    scope.with_tasks(|tasks| tasks.line.push_back(task));
    if line.has_waiting_threads() {
        scope.publish();
    }
    Ok(())
}

/// Adds a local task: see [`add`].
#[inline(always)]
pub(super) fn add_local<'c>(line: &TaskLine, task: LocalTask<'c>) -> Result<(), LocalTask<'c>> {
    let innermost = scopes(INNERMOST.get()).next();
    if !innermost.is_some_and(|scope| scope.is_of(line)) {
        return Err(task);
    }
    // SAFETY: it goes to the scope of this thread. From there `publish` shares it; `leave` does if
    // another scope of the line is left on this thread, and otherwise puts it back together with all
    // that the thread has, by `put_back`, which shares what can't be moved.
    let task = unsafe { task.into_unshared() };
    add(line, task).map_err(|_| unreachable!("the innermost scope is of this line"))
}

/// Takes the next task of the thread's innermost scope, if that runs `line`, and the task is a local one
/// of this owner.
#[inline]
pub(super) fn take_local(line: &TaskLine, owner: *const ()) -> Option<LocalTask<'static>> {
    let scope = scopes(INNERMOST.get()).next()?;
    // It stops between any two tasks.
    if !scope.is_of(line) || owner.is_null() || scope.stops.is_none_or(|stops| stops()) {
        return None;
    }
    let task = scope.with_tasks(|tasks| {
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
    scope.counters().start();
    scope.counters().finish();
    // SAFETY: only local tasks have an owner, and what is on a scope may be run on its thread.
    Some(unsafe { LocalTask::of_unshared(task) })
}

/// Returns whether the thread is running tasks of `line`.
pub(super) fn is_running(line: &TaskLine) -> bool {
    scopes(INNERMOST.get()).any(|scope| scope.is_of(line) && scope.stops.is_some())
}

/// Lets other threads see what this one has added to `line`.
pub(super) fn publish(line: &TaskLine) {
    for scope in scopes(INNERMOST.get()).filter(|scope| scope.is_of(line)) {
        scope.publish();
    }
}
