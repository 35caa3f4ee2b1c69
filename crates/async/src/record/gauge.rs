//! [`Gauge`]: a gauge, a number that goes up and down, with its history in bounded memory.
//!
//! Time is cut into intervals, of which those are kept in which the number has changed: with its
//! least, its greatest and its last value there. When there are too many, intervals are made twice
//! as long, and neighbours become one. So moments become less exact as time goes on, and peaks never
//! do.

use crate::sync::statistic::{Mutex, MutexGuard};

use super::ticks::Clock;

/// The most intervals that are kept: 256 KiB of them.
const MAX_STEPS: usize = 1 << 13;
/// The first intervals have 2 to this power of ticks, which is about half a microsecond.
const FIRST_SHIFT: u32 = 10;

/// A gauge: a number of something, such as bytes, that any thread may change, and its history.
///
/// # Examples
///
/// ```
/// use tfrt_async::record::Recorder;
///
/// let bytes = Recorder::new().gauge();
/// bytes.add(100);
/// bytes.sub(60);
/// let recording = bytes.recording();
/// assert_eq!((recording.now, recording.peak), (40, 100));
/// ```
#[derive(Debug)]
pub struct Gauge {
    clock: Clock,
    state: Mutex<State>,
}

/// The history of a [`Gauge`] until a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GaugeRecording {
    /// The intervals in which the number changed, in their order. Between them it kept the last
    /// value; before the first it was 0.
    pub steps: Vec<GaugeStep>,
    /// The length of an interval, in nanoseconds.
    pub resolution_ns: u64,
    /// The number at the moment of the recording.
    pub now: u64,
    /// The greatest number so far.
    pub peak: u64,
    /// The time at which the number first was `peak`, in nanoseconds since the recorder was made.
    pub peak_at_ns: u64,
    /// The number of calls of [`Gauge::add`].
    pub n_added: u64,
    /// The sum of all that was added.
    pub added: u64,
}

/// The values of a [`Gauge`] in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GaugeStep {
    /// The beginning, in nanoseconds since the recorder was made.
    pub begin_ns: u64,
    /// The least value after a change.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    /// The value at the end of the interval.
    pub last: u64,
}

#[derive(Debug)]
struct State {
    /// Invariant: the numbers ascend.
    steps: Vec<Step>,
    shift: u32,
    now: u64,
    peak: u64,
    peak_ticks: u64,
    n_added: u64,
    added: u64,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Ticks, divided by the length of an interval.
    number: u64,
    min: u64,
    max: u64,
    last: u64,
}

impl Gauge {
    pub(super) fn new(clock: Clock) -> Gauge {
        let state = State {
            steps: Vec::new(),
            shift: FIRST_SHIFT,
            now: 0,
            peak: 0,
            peak_ticks: clock.now(),
            n_added: 0,
            added: 0,
        };
        Gauge {
            clock,
            state: Mutex::new(state),
        }
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        let mut state = self.state();
        state.n_added += 1;
        state.added = state.added.saturating_add(n);
        state.now = state.now.saturating_add(n);
        state.change(self.clock.now());
    }

    /// Subtracts `n`.
    pub fn sub(&self, n: u64) {
        let mut state = self.state();
        state.now = state.now.saturating_sub(n);
        state.change(self.clock.now());
    }

    /// Returns the history until now.
    pub fn recording(&self) -> GaugeRecording {
        let (scale, state) = (self.clock.scale(), self.state());
        let steps = state.steps.iter().map(|step| GaugeStep {
            begin_ns: scale.ns(step.number << state.shift),
            min: step.min,
            max: step.max,
            last: step.last,
        });
        GaugeRecording {
            steps: steps.collect(),
            resolution_ns: scale.len_ns(1 << state.shift),
            now: state.now,
            peak: state.peak,
            peak_at_ns: scale.ns(state.peak_ticks),
            n_added: state.n_added,
            added: state.added,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds this lock.
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    /// Enters the new value at a time.
    fn change(&mut self, ticks: u64) {
        let now = self.now;
        if now > self.peak {
            (self.peak, self.peak_ticks) = (now, ticks);
        }
        let number = ticks >> self.shift;
        match self.steps.last_mut() {
            // Processors' clocks may differ a little.
            Some(step) if step.number >= number => {
                step.min = step.min.min(now);
                step.max = step.max.max(now);
                step.last = now;
            }
            _ => {
                self.steps.push(Step {
                    number,
                    min: now,
                    max: now,
                    last: now,
                });
                if self.steps.len() >= MAX_STEPS {
                    self.halve();
                }
            }
        }
    }

    /// Makes intervals longer until a half of them or fewer are left.
    fn halve(&mut self) {
        while self.steps.len() > MAX_STEPS / 2 && self.shift < u64::BITS - 1 {
            self.shift += 1;
            for step in &mut self.steps {
                step.number >>= 1;
            }
            self.steps.dedup_by(|later, earlier| {
                let is_same = later.number == earlier.number;
                if is_same {
                    earlier.min = earlier.min.min(later.min);
                    earlier.max = earlier.max.max(later.max);
                    earlier.last = later.last;
                }
                is_same
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive_when_intervals_grow() {
        let gauge = Gauge::new(Clock::start());
        let mut state = gauge.state();
        // Ten times as many changes as are kept, an interval apart, with one peak among them.
        for at in 0..10 * MAX_STEPS as u64 {
            state.now = if at == 4_321 { 1_000 } else { at % 7 };
            state.change(at << FIRST_SHIFT);
        }
        assert!(state.steps.len() < MAX_STEPS);
        let greatest = state.steps.iter().map(|step| step.max).max();
        assert_eq!((greatest, state.peak), (Some(1_000), 1_000));
        assert_eq!(state.peak_ticks, 4_321 << FIRST_SHIFT);
        assert!(state.steps.is_sorted_by_key(|step| step.number));
        let last = state.steps.last().expect("the last is kept");
        assert_eq!(last.last, (10 * MAX_STEPS as u64 - 1) % 7);
    }

    #[test]
    fn clocks_that_go_back_a_little_do_not_confuse_it() {
        let gauge = Gauge::new(Clock::start());
        let mut state = gauge.state();
        for (now, ticks) in [(1, 1 << 20), (5, 1 << 19), (2, 1 << 21)] {
            state.now = now;
            state.change(ticks);
        }
        let lasts: Vec<u64> = state.steps.iter().map(|step| step.last).collect();
        assert_eq!(lasts, [5, 2]);
    }

    #[test]
    fn threads_change_it_together() {
        let gauge = Gauge::new(Clock::start());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        gauge.add(3);
                        gauge.sub(2);
                    }
                });
            }
        });
        let recording = gauge.recording();
        assert_eq!(recording.now, 4_000);
        assert_eq!((recording.n_added, recording.added), (4_000, 12_000));
        assert!((4_000..=4_012).contains(&recording.peak));
        assert!(recording.steps.is_sorted_by_key(|step| step.begin_ns));
    }
}
