//! The time that a cache line takes from one processor to another, which two threads can't do
//! without.
//!
//! On virtual machines two processors may be near each other or far, and change within hours. So
//! this is measured before and after everything that two threads do.

use std::fmt;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time from which on hand-offs are far.
const FAR_NS: f64 = 80.0;

/// The time from which on hand-offs were not between two processors: others had one of them.
const BUSY_NS: f64 = 1_000.0;

/// The time of a hand-off, one way.
#[derive(Clone, Copy, Debug)]
pub struct HandOff {
    /// Nanoseconds.
    pub ns: f64,
}

impl HandOff {
    /// Lets two threads pass a line to each other: the shortest of some tries, since both have a
    /// processor then.
    pub fn measure() -> HandOff {
        const N_TRIES: usize = 15;
        let tries = (0..N_TRIES).map(|_| measure_once());
        HandOff {
            ns: tries.fold(f64::INFINITY, f64::min),
        }
    }
}

impl fmt::Display for HandOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.ns {
            ns if ns > BUSY_NS => "a processor is busy",
            ns if ns > FAR_NS => "far",
            _ => "near",
        };
        write!(f, "{:.0} ns, {place}", self.ns)
    }
}

fn measure_once() -> f64 {
    const N_TURNS: u32 = 5_000;
    let turn = AtomicU32::new(0);
    // Takes every second turn, from its own on. Gives up when the other has no processor.
    let pass = |own: u32| {
        let deadline = Instant::now() + Duration::from_millis(50);
        for index in 0..N_TURNS {
            let mine = 2 * index + own;
            let mut n_looks = 0u32;
            // Ordering: the line itself is all that is passed.
            while turn.load(Ordering::Acquire) != mine {
                spin_loop();
                n_looks += 1;
                if n_looks.is_multiple_of(1 << 16) && Instant::now() > deadline {
                    return;
                }
            }
            turn.store(mine + 1, Ordering::Release);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| pass(1));
        // The other thread has begun when it has answered once.
        let start = Instant::now();
        pass(0);
        let passed = turn.load(Ordering::Acquire).max(1);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(passed)
    })
}
