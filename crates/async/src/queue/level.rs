//! Levels: what the calling thread is running for single-threaded queues, and the tasks that only
//! it can see.
//!
//! A thread that runs a line enters a *level*, with a batch of tasks. Tasks that these add wait on
//! the level, too, so that neither adding nor taking them needs a lock or an atomic exchange. They
//! go to the line when the level is left, when another thread waits for tasks, and before a task
//! that may wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;

use super::Task;
use super::single::Line;
use crate::sync::Arc;

/// What the thread runs, outermost first.
struct Level {
    line: Arc<Line>,
    /// The rest of the batch, and behind it what this thread has added meanwhile.
    tasks: VecDeque<Task>,
    /// The number of tasks in the rest of the batch.
    n_batch: usize,
    /// Whether this thread may write the line's own counters.
    owns_lane: bool,
}

impl Level {
    #[inline]
    fn begin_batch(&mut self) {
        if self.line.may_have_tasks() {
            self.line.take_before(&mut self.tasks);
        }
        self.n_batch = self.tasks.len();
    }

    fn is_of(&self, line: &Line) -> bool {
        ptr::eq(Arc::as_ptr(&self.line), line)
    }
}

thread_local! {
    static LEVELS: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
    /// The line of the innermost level, or null.
    static INNERMOST: Cell<*const Line> = const { Cell::new(ptr::null()) };
}

#[inline]
fn is_innermost(line: &Line) -> bool {
    ptr::eq(INNERMOST.get(), line)
}

/// The innermost level of the thread, until it is dropped.
pub(super) struct Entered {
    /// Whether the thread may write the line's own counters.
    pub(super) owns_lane: bool,
    claimed_lane: bool,
}

/// Begins a level with a batch.
pub(super) fn enter(line: &Arc<Line>, batch: VecDeque<Task>) -> Entered {
    let inherits = LEVELS.with_borrow(|levels| {
        let mut ours = levels.iter().filter(|level| level.is_of(line));
        ours.any(|level| level.owns_lane)
    });
    let claimed_lane = !inherits && line.claim_lane();
    let level = Level {
        line: line.clone(),
        n_batch: batch.len(),
        tasks: batch,
        owns_lane: inherits || claimed_lane,
    };
    let owns_lane = level.owns_lane;
    LEVELS.with_borrow_mut(|levels| levels.push(level));
    INNERMOST.set(Arc::as_ptr(line));
    Entered {
        owns_lane,
        claimed_lane,
    }
}

impl Entered {
    /// Returns the next task of the level: of the batch, or of a new batch that is all that is in
    /// line, with what the thread has added at its end.
    #[inline]
    pub(super) fn next(&self) -> Option<Task> {
        LEVELS.with_borrow_mut(|levels| {
            let level = levels.last_mut()?;
            if level.n_batch == 0 {
                level.begin_batch();
            }
            let task = level.tasks.pop_front()?;
            level.n_batch -= 1;
            Some(task)
        })
    }
}

impl Drop for Entered {
    /// Puts what is left of the batch back to the front of the line, and what was added to its end.
    fn drop(&mut self) {
        let (mut level, outer) = LEVELS.with_borrow_mut(|levels| {
            let level = levels.pop().expect("levels are left in order");
            let outer = levels.last().map(|level| Arc::as_ptr(&level.line));
            (level, outer.unwrap_or(ptr::null()))
        });
        INNERMOST.set(outer);
        if self.claimed_lane {
            level.line.release_lane();
        }
        let added = level.tasks.split_off(level.n_batch);
        level.line.put_back(level.tasks, added);
    }
}

/// Adds a task to the thread's level, if what it runs is `line`; else gives it back.
#[inline]
pub(super) fn add(line: &Line, task: Task) -> Result<(), Task> {
    // The thread's levels are gone when it is past its end.
    if !is_innermost(line) {
        return Err(task);
    }
    LEVELS.with_borrow_mut(|levels| {
        let level = levels.last_mut().expect("there is an innermost level");
        line.lane(level.owns_lane).add(1);
        level.tasks.push_back(task);
    });
    if line.has_waiting_threads() {
        publish(line);
    }
    Ok(())
}

/// Tells whether the thread is running tasks of `line`.
pub(super) fn is_running(line: &Line) -> bool {
    let is_running = LEVELS.try_with(|levels| {
        let levels = levels.borrow();
        levels.iter().any(|level| level.is_of(line))
    });
    is_running.unwrap_or(false)
}

/// Lets other threads see what this one has added to `line`.
#[cold]
pub(super) fn publish(line: &Line) {
    if !is_innermost(line) {
        return;
    }
    let added = LEVELS.with_borrow_mut(|levels| {
        let level = levels.last_mut();
        level.map(|level| level.tasks.split_off(level.n_batch))
    });
    line.put_back(VecDeque::new(), added.unwrap_or_default());
}
