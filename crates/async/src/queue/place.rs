//! Where a worker that was just woken runs.
//!
//! A worker that wakes another one mostly does so some microseconds after it was woken itself, and then the thread
//! that has woken it still runs: it is about to sleep. With as many workers as processors none is free at that moment,
//! so the system may queue the other worker behind the one that woke it; and although a processor is free right
//! after, the system sees that only some milliseconds later, at its next tick. So a worker that finds, between two
//! tasks, that another one was woken a while ago and has not begun takes its own processor from those that the other
//! may use, for a moment: then the system moves it at once.
//! The mask that it had is given back at once, so what a user has set stays; only who sets it in the very same
//! microseconds may lose that.

#[cfg(all(target_os = "linux", not(any(shuttle, miri))))]
pub(super) use linux::Place;
#[cfg(not(all(target_os = "linux", not(any(shuttle, miri)))))]
pub(super) use other::Place;

#[cfg(all(target_os = "linux", not(any(shuttle, miri))))]
mod linux {
    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

    use crate::queue::cores::text_of;
    use crate::sync::statistic::{AtomicU32, Ordering};

    /// What the system knows a worker by; nothing before it runs.
    #[derive(Default)]
    pub(in crate::queue) struct Place(AtomicU32);

    impl Place {
        /// The calling thread is the worker.
        pub(in crate::queue) fn enter(&self) {
            let thread = gettid().as_raw_nonzero().get();
            // Ordering: a number.
            self.0.store(thread.unsigned_abs(), Ordering::Relaxed);
        }

        /// Moves the worker to another processor if it waits for that of the calling thread, and may use others.
        pub(in crate::queue) fn move_away(&self) {
            let thread = i32::try_from(self.0.load(Ordering::Relaxed));
            let Some(thread) = thread.ok().and_then(Pid::from_raw) else {
                return;
            };
            let Some(here) = processor() else { return };
            // A thread that is gone, that may not be moved, or that has no other processor, stays.
            let Ok(all) = sched_getaffinity(Some(thread)) else {
                return;
            };
            let mut others = all;
            others.unset(here);
            if sched_setaffinity(Some(thread), &others).is_ok() {
                let _ = sched_setaffinity(Some(thread), &all);
            }
        }
    }

    /// The processor that the calling thread is on. From a file, in some microseconds: the faster ways need unsafe
    /// code, or six kilobytes of a program that is to be small.
    pub(super) fn processor() -> Option<usize> {
        let stat = text_of("/proc/thread-self/stat")?;
        // `PID (NAME) STATE ...`; a name may have anything in it. The processor is the 39th field.
        let name_end = stat.bytes().rposition(|byte| byte == b')')?;
        let number = stat.get(name_end..)?.split(' ').nth(39 - 2)?;
        let number: usize = number.parse().ok()?;
        (number < CpuSet::MAX_CPU).then_some(number)
    }
}

#[cfg(not(all(target_os = "linux", not(any(shuttle, miri)))))]
mod other {
    /// Nothing: here the system has to see to it alone.
    #[derive(Default)]
    pub(in crate::queue) struct Place;

    impl Place {
        /// The calling thread is the worker.
        pub(in crate::queue) fn enter(&self) {}

        /// Moves nothing.
        pub(in crate::queue) fn move_away(&self) {}
    }
}

#[cfg(all(test, target_os = "linux", not(any(shuttle, miri))))]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::Place;
    use super::linux::processor;

    /// Moves a thread away that may use the processors of a mask; gives the mask and the processor that it has then.
    fn moved(mask: CpuSet) -> (CpuSet, usize) {
        let (entered, place) = channel();
        let (moved, seen) = channel();
        let mover = thread::spawn(move || {
            // It stays where the other one is.
            sched_setaffinity(None, &one(sched_getcpu())).unwrap();
            let place: Place = place.recv().unwrap();
            place.move_away();
            moved.send(()).unwrap();
        });
        let worker = thread::spawn(move || {
            sched_setaffinity(None, &mask).unwrap();
            let place = Place::default();
            place.enter();
            entered.send(place).unwrap();
            seen.recv().unwrap();
            (sched_getaffinity(None).unwrap(), sched_getcpu())
        });
        mover.join().unwrap();
        worker.join().unwrap()
    }

    fn one(processor: usize) -> CpuSet {
        let mut set = CpuSet::new();
        set.set(processor);
        set
    }

    #[test]
    fn worker_may_use_afterwards_what_it_could_before() {
        let all = sched_getaffinity(None).unwrap();
        assert!(moved(all).0 == all);
    }

    #[test]
    fn worker_that_is_bound_to_a_processor_stays() {
        let here = sched_getcpu();
        assert!(moved(one(here)) == (one(here), here));
    }

    #[test]
    fn thread_knows_its_processor() {
        let here = sched_getcpu();
        let thread = thread::spawn(move || {
            sched_setaffinity(None, &one(here)).unwrap();
            processor()
        });
        assert_eq!(thread.join().unwrap(), Some(here));
    }

    #[test]
    fn worker_that_does_not_run_yet_is_left_alone() {
        Place::default().move_away();
    }
}
