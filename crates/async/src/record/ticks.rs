//! [`Clock`]: time in ticks of the cheapest clock that there is.
//!
//! On x86-64 that is the processor's time-stamp counter, where the processor says that it goes on
//! at the same rate whatever happens; elsewhere it is the system's monotonic clock. A reading of the
//! counter is 9 ns where one of the system's clock is 27. How long a tick is, is found out by
//! comparing the two from the start of the clock to the moment of asking.

use std::time::Instant;

/// A clock that counts ticks from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    has_counter: bool,
    start_ticks: u64,
    start: Instant,
}

/// A conversion of ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    start_ticks: u64,
    ns_per_tick: f64,
}

impl Clock {
    /// Starts a clock.
    pub(super) fn start() -> Clock {
        let has_counter = has_counter();
        let (start_ticks, start) = both();
        Clock {
            has_counter,
            start_ticks: if has_counter { start_ticks } else { 0 },
            start,
        }
    }

    /// Returns the time in ticks.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        if self.has_counter {
            return counter();
        }
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the length of a tick, by all that is known by now.
    pub(super) fn scale(&self) -> Scale {
        let (now_ticks, now) = both();
        let ticks = now_ticks.saturating_sub(self.start_ticks);
        let elapsed = now.duration_since(self.start);
        let measured = elapsed.as_nanos() as f64 / ticks.max(1) as f64;
        Scale {
            start_ticks: self.start_ticks,
            ns_per_tick: if self.has_counter { measured } else { 1.0 },
        }
    }
}

impl Scale {
    /// Returns the nanoseconds from the start of the clock to a time in ticks.
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        // A processor's counter may be a little behind that of the one where the clock was started.
        let ticks = ticks.saturating_sub(self.start_ticks);
        self.len_ns(ticks)
    }

    /// Returns a number of ticks in nanoseconds.
    pub(super) fn len_ns(&self, ticks: u64) -> u64 {
        // Exact enough: a double counts nanoseconds for a hundred days.
        (ticks as f64 * self.ns_per_tick) as u64
    }
}

/// Reads both clocks at one moment: of some readings that with the least time between the two, since a thread may be
/// interrupted there.
fn both() -> (u64, Instant) {
    let reading = || {
        let before = counter();
        let instant = Instant::now();
        let between = counter().saturating_sub(before);
        (between, before + between / 2, instant)
    };
    let readings = (0..8).map(|_| reading());
    let (_, ticks, instant) = readings
        .min_by_key(|(between, ..)| *between)
        .expect("there are eight");
    (ticks, instant)
}

/// Returns whether there is a counter that always goes on at the same rate.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    const ADVANCED_POWER: u32 = 0x8000_0007;
    const INVARIANT_COUNTER: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= ADVANCED_POWER
        && __cpuid(ADVANCED_POWER).edx & INVARIANT_COUNTER != 0
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn has_counter() -> bool {
    false
}

/// Returns the processor's time-stamp counter.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn counter() -> u64 {
    // SAFETY: the instruction is part of every x86-64, reads a register, and touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn counter() -> u64 {
    0
}
