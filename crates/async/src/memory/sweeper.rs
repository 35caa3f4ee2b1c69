//! Timers that give idle memory back to the system while no block comes or goes.
//!
//! Whoever frees a large block looks, now and then, whether others were idle for too long. When a service goes quiet,
//! nobody does. So hosts lend the timers that they have anyway for deadlines: while memory is idle, one timer looks
//! each second; when there is none, there is no timer either. No thread is made for a process that has no host.
//!
//! ```text
//!            register_memory_user            wake: a block lies idle
//!  no timers ---------------> not sweeping ------------------------> sweeping: a timer is set
//!      ^                        |    ^                                 |
//!      +-- no host lives -------+    +---- nothing is idle, or --------+
//!                                          the timer's host ends
//! ```

use std::sync::{Arc, Weak};

use super::large::{PERIOD, idle_bytes, sweep_if_due};
use super::{USES_FREE_LISTS, trim_memory};
use crate::queue::TimerQueue;
use crate::sync::statistic::{AtomicU32, Mutex, MutexGuard, Ordering};

const NO_TIMERS: u32 = 0;
const NOT_SWEEPING: u32 = 1;
const SWEEPING: u32 = 2;

/// [`NO_TIMERS`], [`NOT_SWEEPING`] or [`SWEEPING`]. Changed from and to [`NO_TIMERS`] by whoever has the lock of
/// [`TIMERS`].
static STATE: AtomicU32 = AtomicU32::new(NO_TIMERS);

/// The timers of hosts.
static TIMERS: Mutex<Vec<Weak<TimerQueue>>> = Mutex::new(Vec::new());

fn all_timers() -> MutexGuard<'static, Vec<Weak<TimerQueue>>> {
    TIMERS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Registers a user of memory, as long as the result lives, and lends the timers that look each second, while large
/// blocks are idle, for those that nobody has used for a second, and give them back to the system.
///
/// When the last result of this function is dropped, all that is idle goes back.
pub fn register_memory_user(timers: &Arc<TimerQueue>) -> MemoryUser {
    if USES_FREE_LISTS {
        let mut all_timers = all_timers();
        all_timers.retain(|timers| timers.strong_count() > 0);
        all_timers.push(Arc::downgrade(timers));
        // Ordering: a hint; timers are under the lock.
        let _ = STATE.compare_exchange(
            NO_TIMERS,
            NOT_SWEEPING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
    // Ordering: only the number matters.
    N_USERS.fetch_add(1, Ordering::Relaxed);
    MemoryUser(())
}

/// The number of [`MemoryUser`]s that are alive.
static N_USERS: AtomicU32 = AtomicU32::new(0);

/// A user of memory, registered by [`register_memory_user`] until it is dropped.
#[derive(Debug)]
#[must_use = "memory that is idle goes back when it is dropped"]
pub struct MemoryUser(());

impl Drop for MemoryUser {
    fn drop(&mut self) {
        // Ordering: only the number matters.
        if N_USERS.fetch_sub(1, Ordering::Relaxed) == 1 {
            trim_memory();
        }
    }
}

/// Sets a timer, since a block lies idle, unless one is set.
#[inline]
pub(super) fn wake() {
    // Ordering: a hint; if it is missed, the next block that comes back sets the timer.
    if STATE.load(Ordering::Relaxed) == NOT_SWEEPING {
        begin();
    }
}

#[cold]
#[inline(never)]
fn begin() {
    // Ordering: of all that see it only one goes on; nothing else is read.
    let exchange =
        STATE.compare_exchange(NOT_SWEEPING, SWEEPING, Ordering::Relaxed, Ordering::Relaxed);
    if exchange.is_ok() {
        SweepDuty.set();
    }
}

/// The duty to look for idle memory, which one timer has at a time. Dropped with its timer, so that another may begin.
struct SweepDuty;

impl SweepDuty {
    /// Sets a timer of a host that lives.
    fn set(self) {
        let mut all_timers = all_timers();
        let Some(timers) = all_timers.iter().find_map(Weak::upgrade) else {
            all_timers.clear();
            drop(self);
            // Ordering: a hint; those who change it from this have the lock.
            STATE.store(NO_TIMERS, Ordering::Relaxed);
            return;
        };
        drop(all_timers);
        timers.schedule_after(PERIOD, move || self.look());
    }

    fn look(self) {
        sweep_if_due();
        if idle_bytes() > 0 {
            return self.set();
        }
        drop(self);
        // What came meanwhile has found that somebody looks.
        if idle_bytes() > 0 {
            wake();
        }
    }
}

impl Drop for SweepDuty {
    fn drop(&mut self) {
        // Ordering: a hint.
        STATE.store(NOT_SWEEPING, Ordering::Relaxed);
    }
}
